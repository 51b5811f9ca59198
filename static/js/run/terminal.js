/* The terminal tab: one stream per session, subscribed while it is the one that is shown. */

import { Terminal } from "./ansi.js"

export class Terminals {
  #run
  #socket
  #box
  #streams = new Map() // session -> { terminal, decoder, offset }
  #current = ""
  #first = true // the first session's text came with the page

  constructor(run, socket) {
    this.#run = run
    this.#socket = socket
    this.#box = document.getElementById("terminal-box")
    this.#box?.addEventListener("change", (event) => {
      if (event.target.name === "session") this.#show(event.target.value)
    })
    const first = this.#box?.querySelector("input[name=session]:checked")
    if (first) this.#show(first.value)
  }

  /* Sessions the run has by now: `{name, start}`; new ones get a switch of their own. */
  sessions(list) {
    if (!this.#box) return
    const seg = this.#box.querySelector(".seg")
    for (const { name, start } of list) {
      if ([...seg.querySelectorAll("input")].some((input) => input.value === name)) continue
      const label = document.createElement("label")
      const input = document.createElement("input")
      Object.assign(input, { type: "radio", name: "session", value: name })
      input.dataset.start = start
      label.append(input, name)
      seg.append(label)
      seg.hidden = false
      this.#box.querySelector(".none-yet")?.remove()
      if (!this.#current) {
        input.checked = true
        this.#show(name)
      }
    }
  }

  message({ session, offset, data }) {
    const stream = this.#streams.get(session)
    if (!stream) return
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0))
    const known = stream.offset - offset // bytes of this piece that are here already
    if (known >= bytes.length) return
    if (known < 0) this.#gap(stream, -known)
    stream.offset = offset + bytes.length
    stream.terminal.write(stream.decoder.decode(known > 0 ? bytes.subarray(known) : bytes, { stream: true }))
    const box = this.#box.querySelector(".term")
    if (stream.stick !== false) box.scrollTop = box.scrollHeight
  }

  /* A line for bytes that nobody has; the first sequence ends whatever the bytes before left open. */
  #gap(stream, count) {
    const told = this.#box.querySelector(".term").dataset.gap.replace("{count}", count)
    stream.terminal.write(`${stream.decoder.decode()}\x1b[0m\n${told}\n`)
  }

  #show(session) {
    if (this.#current) {
      this.#streams.delete(this.#current)
      this.#socket.drop(`terminal ${this.#current}`, { type: "unsubscribe", run: this.#run, session: this.#current })
    }
    this.#current = session
    const input = [...this.#box.querySelectorAll("input[name=session]")].find((i) => i.value === session)
    const box = this.#box.querySelector(".term")
    if (!this.#first) box.querySelector("pre").replaceChildren()
    this.#first = false
    box.setAttribute("aria-label", input.closest("label").textContent.trim())
    const stream = {
      terminal: new Terminal(box.querySelector("pre")),
      decoder: new TextDecoder("utf-8"),
      offset: Number(input.dataset.start || 0),
      stick: true,
    }
    box.onscroll = () => { stream.stick = box.scrollHeight - box.scrollTop - box.clientHeight < 40 }
    this.#streams.set(session, stream)
    this.#socket.want(`terminal ${session}`, () => ({
      type: "subscribe_terminal", run: this.#run, session, offset: stream.offset,
    }))
  }
}
