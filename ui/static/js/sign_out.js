// The button in the header with which people sign out.
import { post } from "./api.js";

document.getElementById("sign-out")?.addEventListener("click", async () => {
  await post("/api/sign-out", {}).catch(() => null);
  location.assign("/sign-in");
});
