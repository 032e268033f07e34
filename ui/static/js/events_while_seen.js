// An event stream that is open while its tab is seen. The server sends "beat" every ten seconds.
import { whileSeen } from "./while_seen.js";

const RETRY_MS = 2000;
const SILENT_MS = 30000; // a connection can stand although nobody answers at its other end

/** Follow a stream.
 *  @param {string} address
 *  @param {Record<string, (data: any) => void>} handlers by the name of an event, called with its decoded data
 *  @param {(isLost: boolean) => void} lost called with whether the console is gone or silent */
export function eventsWhileSeen(address, handlers, lost) {
  /** @type {EventSource | null} */
  let source = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @param {number} milliseconds
   *  @param {() => void} action */
  const after = (milliseconds, action) => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const connect = () => {
    close();
    const own = (source = new EventSource(address));
    const giveUp = () => {
      lost(true);
      connect();
    };
    const heard = () => {
      if (own !== source) return;
      lost(false);
      after(SILENT_MS, giveUp);
    };
    own.addEventListener("open", heard);
    own.addEventListener("beat", heard);
    for (const [name, handle] of Object.entries(handlers)) {
      own.addEventListener(name, (event) => {
        heard();
        handle(JSON.parse(event.data));
      });
    }
    own.addEventListener("error", () => {
      if (own !== source) return;
      lost(true);
      if (own.readyState === EventSource.CLOSED) after(RETRY_MS, connect);
    });
    after(SILENT_MS, giveUp);
  };
  return whileSeen(connect, close);
}
