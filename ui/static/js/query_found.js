// One query that is asked for by its id or name, whether lists have it or not.
import { get, problemOf } from "./api.js";

/** A query; null: it has ended, or there is none.
 *  @param {string} id or name */
export async function queryOf(id) {
  try {
    return await get(`/api/queries/${encodeURIComponent(id)}`);
  } catch (error) {
    if (problemOf(error).lost) throw error;
    return null;
  }
}
