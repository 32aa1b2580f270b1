// As much of MQTT 3.1.1 as a member needs: quality of service 0, a clean session, a will.

import { connect } from "node:net";

const KEEPALIVE = 30; // seconds
const [CONNACK, PUBLISH, SUBACK] = [2, 3, 9];

const text = (value) => {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
};

function packet(first, ...parts) {
  const body = Buffer.concat(parts);
  const length = [];
  for (let left = body.length; length.length === 0 || left > 0; left = Math.floor(left / 128)) length.push((left % 128) | (left >= 128 ? 128 : 0));
  return Buffer.concat([Buffer.of(first, ...length), body]);
}

/** One connection. `where` is for node:net; the handlers are `joined()`, `message(topic, bytes)` and `lost()`. */
export class Connection {
  constructor({ where, user, password, identifier, filters, will }, handlers) {
    this.handlers = handlers;
    this.filters = filters;
    this.buffered = Buffer.alloc(0);
    this.socket = connect(where);
    this.socket.setNoDelay(true);
    this.socket.on("connect", () => this.socket.write(hello({ user, password, identifier, will })));
    this.socket.on("data", (data) => this._read(data));
    this.socket.on("error", () => {}); // "close" follows
    this.socket.on("close", () => {
      clearInterval(this.alive);
      handlers.lost();
    });
    this.alive = setInterval(() => this.socket.write(packet(0xc0)), (1000 * KEEPALIVE) / 2);
  }

  publish(topic, bytes) {
    this.socket.write(packet(0x30, text(topic), bytes));
  }

  /** Ends the connection in order: the broker does not send the will. */
  end() {
    this.socket.end(packet(0xe0));
  }

  _read(data) {
    this.buffered = Buffer.concat([this.buffered, data]);
    for (;;) {
      let [length, at] = [0, 1];
      do {
        if (at >= this.buffered.length || at > 4) return;
        length += (this.buffered[at] & 127) * 128 ** (at - 1);
      } while (this.buffered[at++] & 128);
      if (this.buffered.length < at + length) return;
      this._take(this.buffered[0] >> 4, this.buffered.subarray(at, at + length));
      this.buffered = this.buffered.subarray(at + length);
    }
  }

  _take(kind, body) {
    if (kind === CONNACK) {
      if (body[1] !== 0) this.socket.destroy();
      else this.socket.write(packet(0x82, Buffer.of(0, 1), ...this.filters.flatMap((filter) => [text(filter), Buffer.of(0)])));
    } else if (kind === SUBACK) {
      if (body.subarray(2).includes(0x80)) this.socket.destroy();
      else this.handlers.joined();
    } else if (kind === PUBLISH) {
      const end = 2 + body.readUInt16BE(0);
      this.handlers.message(body.toString("utf8", 2, end), body.subarray(end));
    }
  }
}

function hello({ user, password, identifier, will: [topic, bytes] }) {
  const flags = 0x02 | 0x04 | (user === undefined ? 0 : 0x80) | (password === undefined ? 0 : 0x40);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  const keepalive = Buffer.of(0, KEEPALIVE);
  const secrets = [user, password].filter((each) => each !== undefined).map(text);
  return packet(0x10, text("MQTT"), Buffer.of(4, flags), keepalive, text(identifier), text(topic), length, bytes, ...secrets);
}
