// A trial at a gateway: begun, followed until it ends, stopped.
import { get, post, problemOf, request } from "../api.js";

/** @import { Problem, Trial, TrialSample } from "../payloads.d.ts" */

const LOOK_MS = 400;

/** @typedef {{ gateway: string, text?: string, endpoint?: string, options?: Record<string, string>,
 *    discover?: boolean, seconds?: number }} Asked */
/** @typedef {{ heard: (trial: FollowedTrial) => void, ended: (trial: FollowedTrial) => void }} Heard */

/** Wait a moment.
 *  @returns {Promise<void>} */
const rest = () =>
  new Promise((resolve) => {
    setTimeout(resolve, LOOK_MS);
  });

export class FollowedTrial {
  /** @param {Asked} asked
   *  @param {Heard} on */
  constructor(asked, on) {
    this.asked = asked;
    this.on = on;
    /** @type {Trial | null} */
    this.known = null;
    /** @type {TrialSample[]} */
    this.samples = [];
    /** @type {Problem | null} */
    this.problem = null;
    this.left = false; // whether another one has taken its place
  }

  get id() {
    return this.known?.id ?? "";
  }

  /** Begin, and follow until the end. */
  async run() {
    try {
      this.known = await post("/api/sources/trials", this.asked);
      this.on.heard(this);
      while (!this.left && !(this.known.done && this.samples.length >= this.known.heard)) {
        this.known = await get(`/api/sources/trials/${this.id}?since=${this.samples.length}`);
        this.samples.push(...this.known.samples);
        if (!this.left) this.on.heard(this);
        if (!this.known.samples.length) await rest();
      }
      if (this.known.problem) this.problem = { message: this.known.problem, hint: this.known.hint };
    } catch (error) {
      this.problem = problemOf(error);
    }
    if (!this.left) this.on.ended(this);
  }

  /** End it early; what has come stays. */
  async stop() {
    if (this.id && !this.known?.done) await request("DELETE", `/api/sources/trials/${this.id}`).catch(() => null);
  }

  /** Stop it, and say nothing more of it. */
  leave() {
    this.left = true;
    return this.stop();
  }
}
