// The page of one's own account: password and API tokens.
import { get, post, problemOf } from "../api.js";
import { byId } from "../elements.js";
import { tokenTable } from "./tokens.js";

/** @import { Problem } from "../payloads.d.ts" */

/** @param {Problem | null} problem */
function say(problem) {
  byId("account-problem").hidden = !problem;
  if (problem) byId("account-problem").textContent = [problem.message, problem.hint].filter(Boolean).join(" ");
}

byId("password-form", HTMLFormElement).addEventListener("submit", async (event) => {
  event.preventDefault();
  const [before, after] = [byId("old-password", HTMLInputElement), byId("new-password", HTMLInputElement)];
  try {
    await post("/api/me/password", { old: before.value, new: after.value });
    byId("password-said").textContent = "The password is changed.";
    before.value = after.value = "";
    say(null);
  } catch (thrown) {
    byId("password-said").textContent = "";
    say(problemOf(thrown));
  }
});

const show = tokenTable("/api/me/tokens", false, say);
try {
  const me = await get("/api/me");
  byId("who").textContent = `${me.name} is ${me.role}.`;
  byId("password-section").hidden = !me.account || me.account.provider !== null;
  show(await get("/api/me/tokens"));
} catch (thrown) {
  say(problemOf(thrown));
}
