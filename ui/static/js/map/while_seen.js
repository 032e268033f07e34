// Streams rest while nobody sees their tab: a browser opens six connections to a console at most, all tabs together.
const REST_AFTER_MS = 3000; // changing tabs to and fro does not begin anew

/** Call open now, close when the tab has been out of sight for a while, and open when it is seen again. */
export function whileSeen(open, close) {
  let resting = false;
  let timer = null;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(() => {
        resting = true;
        close();
      }, REST_AFTER_MS);
    } else if (resting) {
      resting = false;
      open();
    }
  };
  open();
  document.addEventListener("visibilitychange", look);
  look();
}
