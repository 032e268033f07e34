// Streams and polls rest while nobody sees their tab: a browser opens six connections to a console at most,
// all tabs together.
const REST_AFTER_MS = 3000; // changing tabs to and fro does not begin anew

/** Call open when the tab is seen, and close when it has been out of sight for a while; returns what ends both.
 *  @param {() => void} open
 *  @param {() => void} close
 *  @returns {() => void} */
export function whileSeen(open, close) {
  let resting = true;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(() => {
        if (resting) return;
        resting = true;
        close();
      }, REST_AFTER_MS);
    } else if (resting) {
      resting = false;
      open();
    }
  };
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
    if (!resting) close();
    resting = true;
  };
}

/** Call look at once and again and again, but not while the tab is out of sight; returns what ends it.
 *  @param {() => void} look
 *  @param {number} milliseconds
 *  @returns {() => void} */
export function againWhileSeen(look, milliseconds) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const open = () => {
    look();
    timer = setInterval(look, milliseconds);
  };
  return whileSeen(open, () => clearInterval(timer));
}
