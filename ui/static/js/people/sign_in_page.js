// The page on which people sign in; afterwards the page that was asked for is shown.
import { get, post, problemOf } from "../api.js";
import { byId } from "../elements.js";

/** The page that was asked for: a path of this console, never another site. */
function wanted() {
  const next = new URLSearchParams(location.search).get("next") ?? "/";
  const address = new URL(next, location.origin);
  return next.startsWith("/") && address.origin === location.origin ? address.href : location.origin;
}

/** @param {unknown} thrown */
function show(thrown) {
  const problem = problemOf(thrown);
  byId("sign-in-problem").textContent = [problem.message, problem.hint].filter(Boolean).join(" ");
  byId("sign-in-problem").hidden = false;
}

byId("sign-in", HTMLFormElement).addEventListener("submit", async (event) => {
  event.preventDefault();
  const password = byId("password", HTMLInputElement);
  try {
    await post("/api/sign-in", { name: byId("name", HTMLInputElement).value, password: password.value });
    location.replace(wanted());
  } catch (thrown) {
    password.value = "";
    password.focus();
    show(thrown);
  }
});

// Who comes by a link of another site brings no cookie at first, though they have signed in.
const me = await get("/api/me").catch(() => null);
if (me && (me.signed_in || !me.accounts)) location.replace(wanted());
