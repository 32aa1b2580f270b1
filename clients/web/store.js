/** The answers and the spending of a client: the same request again gets the same bytes, a different one under the same round gets none. */

import { RefusedError } from "./bytes.js";

/**
 * @typedef {object} Entry One answered round. It holds no record and no value.
 * @property {string} run
 * @property {number} round
 * @property {string} digest of the request, in hexadecimal
 * @property {number} nano what it cost, in nano-nats
 * @property {number} size bytes of reports
 * @property {Uint8Array[]} replies byte for byte
 * @property {import("./wire.js").Line} line for the account
 * @property {Label[]} labels outcomes that labels keep from now on
 * @property {number} order the how-manieth of this store
 * @property {any[]} [asks] the public asks, as a page showed them; a page may keep them
 */

/** @typedef {{label: string, what: string, number: number, report: number}} Label The first outcome under a label, for life; `number` is the client's then. */

/** @typedef {{run: number, life: number, rounds: number, size: number}} Totals Spent in this run and for life, in nano-nats; rounds and bytes of reports. */

/**
 * @typedef {object} Store
 * @property {(run: string, round: number) => Promise<Entry | undefined>} get
 * @property {(run: string) => Promise<Totals>} totals
 * @property {(label: string) => Promise<Label | undefined>} label
 * @property {(entry: Entry, check: (totals: Totals) => void) => Promise<Entry | null>} commit One step, durable when it is over: the entry that stands for
 *   the round from now on, which may be another one; null where a label was kept meanwhile. `check` throws where it cannot be paid.
 * @property {(run: string) => Promise<Entry[]>} entries in the order of the answers
 */

/** Lives as long as its page. @implements {Store} */
export class MemoryStore {
  constructor() {
    /** @type {Map<string, Entry>} */
    this.kept = new Map();
    /** @type {Map<string, Label>} */
    this.labels = new Map();
  }

  /** @param {string} run @param {number} round */
  async get(run, round) {
    return this.kept.get(`${run} ${round}`);
  }

  /** @param {string} run */
  async totals(run) {
    return this.sums(run);
  }

  /** @param {string} label */
  async label(label) {
    return this.labels.get(label);
  }

  /** @param {Entry} entry @param {(totals: Totals) => void} check @returns {Promise<Entry | null>} */
  async commit(entry, check) {
    const key = `${entry.run} ${entry.round}`;
    const before = this.kept.get(key);
    if (before) return before;
    if (entry.labels.some(({ label }) => this.labels.has(label))) return null;
    const totals = this.sums(entry.run);
    check(totals);
    this.kept.set(key, { ...entry, order: totals.rounds });
    for (const label of entry.labels) this.labels.set(label.label, label);
    return entry;
  }

  /** @param {string} run */
  async entries(run) {
    return [...this.kept.values()].filter((entry) => entry.run === run);
  }

  /** @param {string} run @returns {Totals} */
  sums(run) {
    const sums = { run: 0, life: 0, rounds: 0, size: 0 };
    for (const entry of this.kept.values()) {
      sums.run += entry.run === run ? entry.nano : 0;
      sums.life += entry.nano;
      sums.rounds += 1;
      sums.size += entry.size;
    }
    return sums;
  }
}

const VERSION = 1;
const [ENTRIES, SPENT, LABELS] = ["entries", "spent", "labels"];
const LIFE = ""; // no run has this name

/** In the browser's database: it outlives the page, and two pages of one browser share it. @implements {Store} */
export class BrowserStore {
  /** @param {IDBDatabase} database */
  constructor(database) {
    this.database = database;
  }

  /** The store of this name. Throws RefusedError("store"). @param {string} [name] @returns {Promise<BrowserStore>} */
  static async open(name = "local-dp") {
    return new BrowserStore(
      await attempt(() => {
        const opening = indexedDB.open(name, VERSION);
        opening.onupgradeneeded = () => {
          opening.result.createObjectStore(ENTRIES, { keyPath: ["run", "round"] });
          opening.result.createObjectStore(SPENT, { keyPath: "run" });
          opening.result.createObjectStore(LABELS, { keyPath: "label" });
        };
        return done(opening);
      }),
    );
  }

  close() {
    this.database.close();
  }

  /** @param {string} run @param {number} round @returns {Promise<Entry | undefined>} */
  get(run, round) {
    return this.read(ENTRIES, (entries) => entries.get([run, round]));
  }

  /** @param {string} label @returns {Promise<Label | undefined>} */
  label(label) {
    return this.read(LABELS, (labels) => labels.get(label));
  }

  /** @param {string} run @returns {Promise<Totals>} */
  async totals(run) {
    const spent = await this.read(SPENT, (store) => store.getAll());
    return totalsOf(spent, run);
  }

  /** @param {string} run @returns {Promise<Entry[]>} */
  async entries(run) {
    const entries = await this.read(ENTRIES, (store) => store.getAll(IDBKeyRange.bound([run], [run, []])));
    return entries.sort((/** @type {Entry} */ one, /** @type {Entry} */ other) => one.order - other.order);
  }

  /** @param {Entry} entry @param {(totals: Totals) => void} check @returns {Promise<Entry | null>} */
  commit(entry, check) {
    return attempt(() => {
      const step = this.database.transaction([ENTRIES, SPENT, LABELS], "readwrite", { durability: "strict" });
      return new Promise((resolve, reject) => {
        /** @type {{standing: Entry | null, fault: unknown}} */
        const result = { standing: null, fault: null };
        step.oncomplete = () => resolve(result.standing);
        step.onabort = () => (result.fault ? reject(result.fault) : reject(step.error));
        this.enter(step, entry, check, result);
      });
    });
  }

  /**
   * The requests of a commit, each begun by the one before: no other page comes between.
   * @param {IDBTransaction} step
   * @param {Entry} entry
   * @param {(totals: Totals) => void} check
   * @param {{standing: Entry | null, fault: unknown}} result
   */
  enter(step, entry, check, result) {
    const [entries, spent, labels] = [ENTRIES, SPENT, LABELS].map((name) => step.objectStore(name));
    const before = entries.get([entry.run, entry.round]);
    const sums = spent.getAll();
    const known = labels.getAllKeys();
    known.onsuccess = () => {
      if (before.result || entry.labels.some(({ label }) => known.result.includes(label))) {
        result.standing = before.result ?? null;
        return;
      }
      try {
        const totals = totalsOf(sums.result, entry.run);
        check(totals);
        result.standing = { ...entry, order: totals.rounds };
        entries.add(result.standing);
        spent.put({ run: entry.run, nano: totals.run + entry.nano });
        spent.put({ run: LIFE, nano: totals.life + entry.nano, rounds: totals.rounds + 1, size: totals.size + entry.size });
        for (const label of entry.labels) labels.add(label);
      } catch (fault) {
        result.fault = fault;
        step.abort();
      }
    };
  }

  /** @param {string} name @param {(store: IDBObjectStore) => IDBRequest} ask @returns {Promise<any>} */
  read(name, ask) {
    return attempt(() => done(ask(this.database.transaction(name).objectStore(name))));
  }
}

/** @param {{run: string, nano: number, rounds: number, size: number}[]} spent @param {string} run @returns {Totals} */
function totalsOf(spent, run) {
  const life = spent.find((each) => each.run === LIFE) ?? { nano: 0, rounds: 0, size: 0 };
  return { run: spent.find((each) => each.run === run)?.nano ?? 0, life: life.nano, rounds: life.rounds, size: life.size };
}

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Any fault of the database is a refusal: nobody knows then what was spent. @template T @param {() => Promise<T>} work @returns {Promise<T>} */
async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    throw error instanceof RefusedError ? error : new RefusedError("store", String(error));
  }
}
