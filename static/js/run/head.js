/* What stands around the steps: header, budgets, strip, evaluations, events. The server makes the markup, this puts it in. */

const MOST_EVENTS = 80

export class Head {
  #events = document.getElementById("event-list")
  #box = document.getElementById("run")
  #started = Date.parse(document.getElementById("run").dataset.started) || 0
  ended = document.getElementById("run").dataset.ended === "true"

  put(head) {
    for (const [id, html] of Object.entries(head.html ?? {})) {
      const place = document.getElementById(id)
      if (place && place.dataset.html !== html) {
        place.innerHTML = html
        place.dataset.html = html
      }
    }
    const scrub = document.querySelector(".scrub")
    if (scrub && head.steps) {
      const atEnd = scrub.value === scrub.max
      scrub.max = Math.max(1, head.steps)
      if (atEnd) scrub.value = scrub.max
    }
    const ended = head.ended && !this.ended
    this.ended = head.ended
    return ended
  }

  events(list) {
    if (!this.#events) return
    for (const { seq, at, word } of list) {
      if (this.#events.querySelector(`[data-seq="${Number(seq)}"]`)) continue
      const item = document.createElement("li")
      item.dataset.seq = seq
      const time = document.createElement("time")
      time.dateTime = at
      time.textContent = `${this.#clock(at)} · ${seq}`
      const said = document.createElement("span")
      said.textContent = word
      item.append(time, said)
      this.#events.prepend(item)
    }
    while (this.#events.children.length > MOST_EVENTS) this.#events.lastElementChild.remove()
  }

  connection(state, seconds) {
    const note = document.getElementById("connection")
    for (const part of note.querySelectorAll("[data-state]")) part.hidden = part.dataset.state !== state
    note.querySelector("[data-seconds]").textContent = seconds
    note.hidden = state === "live" || this.ended
    this.#box.dataset.connection = state
  }

  #clock(at) {
    const seconds = Math.max(0, Math.floor((Date.parse(at) - this.#started) / 1000)) || 0
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
    const text = parts.map((n) => String(n).padStart(2, "0")).join(":")
    return text.replace(/^(00:)?0?/, "")
  }
}
