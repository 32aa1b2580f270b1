/** What this client uses of MQTT.js. */

export interface Options {
  clientId?: string;
  protocolVersion?: 4;
  clean?: boolean;
  keepalive?: number;
  connectTimeout?: number;
  reconnectPeriod?: number;
  resubscribe?: boolean;
  queueQoSZero?: boolean;
  timerVariant?: "native" | "auto" | "worker";
  username?: string;
  password?: string;
  will?: { topic: string; payload: Uint8Array; qos: 0; retain: false };
  createWebsocket?: (url: string, protocols: string[]) => unknown;
}

export interface Client {
  connected: boolean;
  options: Options;
  on(event: "connect" | "close", listen: () => void): void;
  on(event: "error", listen: (error: Error) => void): void;
  on(event: "message", listen: (topic: string, payload: Uint8Array, packet: { retain: boolean }) => void): void;
  subscribe(topics: string[], options: { qos: 0 }, done: (error: Error | null, granted?: { qos: number }[]) => void): void;
  publish(topic: string, payload: Uint8Array, options: { qos: 0 }): void;
  end(force: boolean, done?: () => void): void;
}

declare const mqtt: { connect(url: string, options: Options): Client };
export default mqtt;
