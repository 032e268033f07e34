// How many statements the editor holds.

/** How many statements a text has.
 *  @param {string} text */
export function statements(text) {
  const bare = text.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--.*$|\/\*[^]*?\*\//gm, (found) =>
    /^['"]/.test(found) ? "x" : " ",
  );
  return bare.split(";").filter((part) => part.trim()).length;
}
