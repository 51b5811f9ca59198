/* Terminal text as nodes, never as markup: what a command printed is hostile. The same rules as portal/core/ansi.py. */

const TOKEN = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?|[\x00-\x1f\x7f-\x9f]/g
const CUT = /\x1b(?:\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?|\[[0-?]*[ -/]*|[ -/]*)$/ // a sequence whose end has not come yet
const COLOURS = ["d", "r", "g", "y", "b", "m", "c", ""]
const LONGEST_LINE = 20000
const MOST_CHARACTERS = 200000
const REACH = 1024 // as far as a sequence alone moves or fills
const MOST_MARKS = 32
const PLAIN = ""

/* Columns of a character, as gymnode/cells.py counts them: no column for marks, two for wide ones. */
const MARK = /[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]/u
const WIDE = new RegExp(String.raw`[
\u1100-\u115f\u231a-\u231b\u2329-\u232a\u23e9-\u23ec\u23f0\u23f3\u25fd-\u25fe\u2614-\u2615\u2648-\u2653
\u267f\u2693\u26a1\u26aa-\u26ab\u26bd-\u26be\u26c4-\u26c5\u26ce\u26d4\u26ea\u26f2-\u26f3\u26f5\u26fa\u26fd
\u2705\u270a-\u270b\u2728\u274c\u274e\u2753-\u2755\u2757\u2795-\u2797\u27b0\u27bf\u2b1b-\u2b1c\u2b50\u2b55
\u2e80-\u303e\u3041-\u3247\u3250-\u4dbf\u4e00-\ua4c6\ua960-\ua97c\uac00-\ud7a3\uf900-\ufad9\ufe10-\ufe6b
\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2fb}\u{1f004}\u{1f0cf}\u{1f18e}\u{1f191}-\u{1f19a}
\u{1f200}-\u{1f320}\u{1f32d}-\u{1f335}\u{1f337}-\u{1f37c}\u{1f37e}-\u{1f393}\u{1f3a0}-\u{1f3ca}
\u{1f3cf}-\u{1f3d3}\u{1f3e0}-\u{1f3f0}\u{1f3f4}\u{1f3f8}-\u{1f43e}\u{1f440}\u{1f442}-\u{1f4fc}
\u{1f4ff}-\u{1f53d}\u{1f54b}-\u{1f54e}\u{1f550}-\u{1f567}\u{1f57a}\u{1f595}-\u{1f596}\u{1f5a4}
\u{1f5fb}-\u{1f64f}\u{1f680}-\u{1f6c5}\u{1f6cc}\u{1f6d0}-\u{1f6d2}\u{1f6d5}-\u{1f6df}\u{1f6eb}-\u{1f6ec}
\u{1f6f4}-\u{1f6fc}\u{1f7e0}-\u{1f7f0}\u{1f90c}-\u{1f93a}\u{1f93c}-\u{1f945}\u{1f947}-\u{1f9ff}
\u{1fa70}-\u{1faf6}\u{20000}-\u{3134a}
]`.replaceAll("\n", ""), "u")
const width = (char) => (char < "\u0300" ? 1 : MARK.test(char) ? 0 : WIDE.test(char) ? 2 : 1)
const wide = (cell) => cell[0] >= "\u0300" && width(String.fromCodePoint(cell[0].codePointAt(0))) === 2

export class Terminal {
  #done = document.createElement("span")
  #live = document.createElement("span")
  #cells = []
  #column = 0
  #colour = ""
  #weight = ""
  #rest = ""
  #last = "" // what REP repeats
  #size = 0
  #pre

  constructor(pre) {
    this.#pre = pre
  }

  write(text) {
    if (!this.#live.isConnected) this.#pre.replaceChildren(this.#done, this.#live) // the text as served stood till now
    text = this.#rest + text
    const cut = text.slice(-4096).match(CUT)
    this.#rest = cut ? cut[0] : ""
    if (cut) text = text.slice(0, text.length - cut[0].length)
    let at = 0
    for (const match of text.matchAll(TOKEN)) {
      this.#put(text.slice(at, match.index))
      this.#control(match[0])
      at = match.index + match[0].length
    }
    this.#put(text.slice(at))
    this.#live.replaceChildren()
    this.#flush(this.#live)
    this.#trim()
  }

  #style() {
    return [this.#colour && `c-${this.#colour}`, this.#weight && `c-${this.#weight}`].filter(Boolean).join(" ")
  }

  #put(text) {
    const style = this.#style()
    for (const char of text) {
      const columns = width(char)
      if (columns === 0 && this.#mark(char)) continue
      if (columns > 0) this.#last = char
      const start = this.#column
      this.#column += columns || 1
      if (this.#column > LONGEST_LINE) continue
      while (this.#cells.length < start) this.#cells.push([" ", PLAIN])
      this.#cells[start] = [char, style]
      if (columns === 2) this.#cells[start + 1] = ["", style] // the column of its other half
      this.#mend(start)
      this.#mend(this.#column)
    }
  }

  /* Put a mark on the character before the cursor, if one is there and hasn't enough of them. */
  #mark(char) {
    let at = Math.min(this.#column, this.#cells.length) - 1
    if (at > 0 && this.#cells[at][0] === "") at -= 1
    if (at < 0 || this.#cells[at][0].length > 2 * MOST_MARKS) return false
    this.#cells[at] = [this.#cells[at][0] + char, this.#cells[at][1]]
    return true
  }

  /* Blank, on both sides of a border, what is left of a wide character whose other half is gone. */
  #mend(border) {
    const left = this.#cells[border - 1]
    const right = this.#cells[border]
    const half = right !== undefined && right[0] === ""
    if (left !== undefined && wide(left)) {
      if (!half) this.#cells[border - 1] = [" ", PLAIN]
    } else if (half) this.#cells[border] = [" ", PLAIN]
  }

  #control(sign) {
    if (sign === "\n") {
      this.#flush(this.#done, "\n")
      this.#cells = []
      this.#column = 0
    } else if (sign === "\r") this.#column = 0
    else if (sign === "\b") this.#column = Math.max(0, this.#column - 1)
    else if (sign === "\t") this.#put(" ".repeat(8 - (this.#column % 8)))
    else if (sign.startsWith("\x1b[")) this.#csi(sign.slice(2, -1), sign.at(-1))
    else if (!sign.startsWith("\x1b") && sign !== "\x07") this.#put(sign < " " ? String.fromCharCode(0x2400 + sign.charCodeAt(0)) : "\ufffd")
  }

  #csi(parameters, final) {
    const numbers = parameters.split(";").map((n) => (/^\d+$/.test(n) ? Number(n) : 0))
    const first = numbers[0]
    const farthest = Math.max(REACH, this.#cells.length)
    if (final === "m") numbers.forEach((n) => this.#restyle(n))
    else if (final === "K" && first === 1) {
      this.#cells.fill([" ", PLAIN], 0, this.#column + 1)
      this.#mend(this.#column + 1)
    } else if (final === "K") {
      this.#cells.length = first === 2 ? 0 : Math.min(this.#cells.length, this.#column)
      this.#mend(this.#column)
    } else if (final === "G") this.#column = Math.min(Math.max(1, first) - 1, farthest)
    else if (final === "C") this.#column = Math.min(this.#column + Math.max(1, first), Math.max(this.#column, farthest))
    else if (final === "b" && this.#last) {
      const room = Math.floor(Math.max(0, REACH - this.#column) / width(this.#last))
      this.#put(this.#last.repeat(Math.min(Math.max(1, first), room)))
    }
    else if (final === "D") this.#column = Math.max(0, this.#column - Math.max(1, first))
  }

  #restyle(number) {
    if (number === 0) this.#colour = this.#weight = ""
    else if (number === 1) this.#weight = "1"
    else if (number === 2) this.#weight = "d"
    else if (number === 22) this.#weight = ""
    else if (number === 39) this.#colour = ""
    else if ((number >= 30 && number <= 37) || (number >= 90 && number <= 97)) this.#colour = COLOURS[number % 10]
  }

  /* The current line as few nodes; neighbours of one style share one, also across lines, so that a long log stays small. */
  #flush(target, end = "") {
    let text = ""
    let style = PLAIN
    for (const [char, other] of this.#cells) {
      if (other !== style) {
        this.#append(target, text, style)
        text = ""
        style = other
      }
      text += char
    }
    this.#append(target, text, style)
    this.#append(target, end, PLAIN)
  }

  #append(target, text, style) {
    if (!text) return
    if (target === this.#done) this.#size += text.length
    const last = target.lastChild
    const same = last && (last.nodeType === Node.TEXT_NODE ? PLAIN : last.className) === style
    if (same && last.textContent.length < 8192) {
      (last.nodeType === Node.TEXT_NODE ? last : last.firstChild).appendData(text)
      return
    }
    if (style === PLAIN) target.append(text)
    else {
      const span = document.createElement("span")
      span.className = style
      span.textContent = text
      target.append(span)
    }
  }

  #trim() {
    while ((this.#size > MOST_CHARACTERS || this.#done.childNodes.length > 800) && this.#done.firstChild !== this.#done.lastChild) {
      this.#size -= this.#done.firstChild.textContent.length
      this.#done.firstChild.remove()
    }
  }
}
