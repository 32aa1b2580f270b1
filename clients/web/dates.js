/** Dates in texts. One form is read, YYYY-MM-DD with or without a time of day; every other one may mean two days, and is never compared in silence. */

const ISO = /^(([0-9]{4})-([0-9]{2})-([0-9]{2}))(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?)?$/;
const LOCAL = /^ *(?:[0-9]{1,4}\/[0-9]{1,2}\/[0-9]{1,4}|[0-9]{4}[-.][0-9]{1,2}[-.][0-9]{1,2}|[0-9]{1,2}[-.][0-9]{1,2}[-.][0-9]{4})(?:[T, ][^\n]*)?$/;

/** An instant to the microsecond, without a time zone, as the text that all spellings of it share: such texts sort as the dates do. */
export class Day {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

/** The date that a text is; null for a text of another form, or of a day that there is not. @param {string} text @returns {Day | null} */
export function dateOf(text) {
  const [, day, year, month, date, hour = "00", minute = "00", second = "00", fraction = ""] = ISO.exec(text) ?? [];
  if (!day || year === "0000" || month < "01" || month > "12" || hour > "23" || minute > "59" || second > "59") return null;
  const days = new Date(Date.UTC(2000 + (Number(year) % 400), Number(month), 0)).getUTCDate(); // the calendar repeats after 400 years
  if (Number(date) < 1 || Number(date) > days) return null;
  const micros = fraction.padEnd(6, "0");
  const time = micros === "000000" ? `${hour}:${minute}:${second}` : `${hour}:${minute}:${second}.${micros}`;
  return new Day(time === "00:00:00" ? day : `${day}T${time}`);
}

/** Whether a text is written like a date, in whatever form. @param {string} text */
export function likeADate(text) {
  return LOCAL.test(text);
}
