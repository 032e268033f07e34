// The StreamSQL editor: CodeMirror 6 with our dialect, completion from the catalog, and the
// console's diagnoses as underlined places. Bundled by build.mjs into ../static/vendor/editor.js.
import { autocompletion, closeBrackets, completionKeymap, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { SQLDialect, sql } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, linter } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const StreamSQL = SQLDialect.define({
  // A dialect's keywords replace the standard ones, so all that StreamSQL knows are listed.
  keywords:
    "select distinct from where group by having as on join left inner outer cross union all except" +
    " intersect with and or not in is null like between exists case when then else end cast true" +
    " false order asc desc limit create replace if or drop insert into values delete primary" +
    " source link view table recursive materialized range rows slide now unbounded partition istream" +
    " dstream rstream subscribe snapshot progress explain type logical federated validate format" +
    " watermark for key show sources tables views queries query gateways describe second seconds" +
    " full semi anti asof natural using qualify over row_number filter within nulls first last" +
    " emit close window tumble hop session late function aggregate returns functions why what row" +
    " confidence" +
    " alarm display output to severity for alter site set refresh at cost weights grouping sets cube rollup" +
    " envelope upsert preceding following current ignore respect" +
    " minute minutes hour hours day days unit zone scale offset sink grant revoke grants user role everybody",
  types: "boolean integer double text timestamp interval bigint float varchar",
  builtin:
    "count sum avg min max arg_min arg_max stddev variance median quantile_cont percentile_cont" +
    " array_agg bool_and bool_or count_if distance coalesce least greatest abs round position",
  operatorChars: "*+-%<>!=|/",
  identifierQuotes: '"',
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: [tags.comment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--code-builtin)" },
]);

/** Turn 1-based line and column into an offset of the document.
 *  @param {Text} doc
 *  @param {number} line
 *  @param {number} column */
function offset(doc, line, column) {
  if (line < 1 || line > doc.lines) return doc.length;
  const found = doc.line(line);
  return Math.min(found.from + Math.max(column - 1, 0), found.to);
}

// Nearer to what is meant come first: columns before relations before functions before keywords.
/** @type {Record<string, number>} */
const BOOST = { column: 5, window: 5, relation: 4, aggregate: 3, function: 2, keyword: 0 };
/** @type {Record<string, string>} */
const ICON = { column: "property", relation: "class", aggregate: "function", window: "keyword" };

/** @import { Text } from "@codemirror/state" */
/** @import { CompletionSource } from "@codemirror/autocomplete" */
/** @import { SQLNamespace } from "@codemirror/lang-sql" */
/** @import { Completion, Diagnosis } from "../static/js/payloads.d.ts" */
/** @typedef {(text: string) => Promise<Diagnosis[]>} Validate */
/** @typedef {(text: string, offset: number) => Promise<Completion[]>} Complete */
/** @typedef {{ doc?: string, schema?: SQLNamespace, onRun: (text: string) => void, validate: Validate,
 *    complete?: Complete, hint?: string }} Options */

/** A linter that underlines what `validate` finds.
 *  @param {Validate} validate */
const checkedBy = (validate) =>
  linter(
    async (view) => {
      const text = view.state.doc.toString();
      if (!text.trim()) return [];
      const found = await validate(text);
      const length = view.state.doc.length;
      return found.map((d) => {
        const from = Math.min(offset(view.state.doc, d.line, d.column), Math.max(length - 1, 0));
        const to = Math.min(Math.max(from + (d.text || " ").length, from + 1), length);
        const hint = d.hint ? `\n${d.hint}` : "";
        return { from, to, severity: d.severity || "error", message: `${d.message}${hint}` };
      });
    },
    { delay: 350 },
  );

/** A source of completions that asks `complete`.
 *  @param {Complete} complete
 *  @returns {CompletionSource} */
const suggestedBy = (complete) => async (context) => {
  const word = context.matchBefore(/\w+/);
  const behind = context.matchBefore(/[.[(]/);
  if (!word && !behind && !context.explicit) return null;
  const found = await complete(context.state.doc.toString(), context.pos);
  return {
    from: word ? word.from : context.pos,
    options: found.map((c) => ({
      label: c.label,
      detail: c.detail === c.label ? "" : c.detail,
      type: ICON[c.kind] || c.kind,
      boost: BOOST[c.kind] || 0,
    })),
    validFor: /^\w*$/,
  };
};

/**
 * Mount an editor.
 * @param {Element} parent element to fill
 * @param {Options} options `doc`: first text; `schema`: columns by relation, for completion; `onRun` is called with
 *   the text on Ctrl-Enter; `complete`: without it, by schema; `hint`: shown while it is empty
 */
export function mount(parent, { doc = "", schema = {}, onRun, validate, complete, hint = "SELECT … FROM …" }) {
  const language = new Compartment();
  /** @param {SQLNamespace} known */
  const dialect = (known) => sql({ dialect: StreamSQL, schema: known, upperCaseKeywords: true });
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        autocompletion(complete ? { override: [suggestedBy(complete)] } : {}),
        highlightActiveLine(),
        lintGutter(),
        checkedBy(validate),
        syntaxHighlighting(colours),
        placeholder(hint),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": "StreamSQL statement" }),
        language.of(dialect(schema)),
        keymap.of([
          { key: "Mod-Enter", run: (v) => (onRun(v.state.doc.toString()), true) },
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          indentWithTab,
        ]),
      ],
    }),
  });
  return {
    view,
    text: () => view.state.doc.toString(),
    /** @param {string} text */
    setText: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    /** @param {SQLNamespace} known */
    setSchema: (known) => view.dispatch({ effects: language.reconfigure(dialect(known)) }),
  };
}
