/** What MQTT.js needs to see in Node before it takes the platform's WebSocket: a navigator of a platform without pages. Imported before it. */

if (!("window" in globalThis) && !("WorkerGlobalScope" in globalThis)) {
  if (!("navigator" in globalThis)) Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true });
  Object.defineProperty(globalThis.navigator, "product", { value: "ReactNative", configurable: true });
}

export {};
