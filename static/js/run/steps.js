/* The list of steps: server-made items go in by id, in order, once. Few are kept in the page, whatever the length of the run. */

const MOST_ITEMS = 60
const PAGE = 30

export class Steps {
  #list = document.getElementById("step-list")
  #earlier = document.getElementById("earlier")
  #later = document.getElementById("later")
  #follow = document.getElementById("follow")
  #busy = false
  #live = false
  #top = 0
  atEnd = true
  following = false

  constructor() {
    const box = this.#list
    this.address = box.dataset.address
    this.atEnd = box.dataset.end === "true"
    this.#earlier.addEventListener("click", (event) => { event.preventDefault(); this.more(-1) })
    this.#later.addEventListener("click", (event) => { event.preventDefault(); this.more(1) })
    this.#follow?.addEventListener("click", () => this.follow(!this.following))
    this.#live = box.dataset.follow === "true"
    addEventListener("scroll", () => this.#scrolled(), { passive: true })
    this.#buttons()
    if (this.#live && this.atEnd && !location.hash) this.follow(true) // opened at its end: stay there
  }

  follow(on) {
    if (on && !this.atEnd) {
      location.assign(location.pathname)
      return
    }
    this.following = on
    this.#follow?.setAttribute("aria-pressed", String(on))
    if (on) this.#toEnd()
  }

  /* Whoever scrolls to the end follows, whoever scrolls back up stops to. */
  #scrolled() {
    const up = scrollY < this.#top - 2
    this.#top = scrollY
    if (up && this.following && this.#below() > 40) this.follow(false) // not where the page only grew shorter
    else if (!up && this.#live && this.atEnd && !this.following && this.#below() < 8) this.follow(true)
  }

  #below() {
    const last = this.#list.lastElementChild
    const bar = document.querySelector(".jump")?.offsetHeight ?? 0 // a phone's
    return last ? last.getBoundingClientRect().bottom - innerHeight + bar : -Infinity
  }

  /* items: `{html}` of whole steps, oldest first; a known id is replaced where it stands. */
  put(items) {
    if (!this.atEnd) return
    document.getElementById("step-now")?.remove()
    for (const { html } of items) {
      const item = this.#made(html)
      this.#gap(item)
      const old = document.getElementById(item.id)
      if (old) {
        this.#keepOpen(old, item)
        old.replaceWith(item)
      } else this.#list.insertBefore(item, this.#after(Number(item.dataset.seq)))
    }
    if (this.following) {
      while (this.#list.children.length > MOST_ITEMS) this.#list.firstElementChild.remove()
      this.#toEnd()
    }
    this.#buttons()
  }

  /* Far behind after a long break: the newest steps alone, the others are a click away. */
  #gap(item) {
    const last = Number(this.last()?.dataset.n ?? 0)
    if (last > 0 && Number(item.dataset.n ?? 0) > last + 1) this.#list.replaceChildren()
  }

  /* Text of the step that is being written; it is replaced by the stored step. */
  delta(text) {
    if (!this.atEnd) return
    let item = document.getElementById("step-now")
    if (!item) {
      const made = document.getElementById("step-now-template").content.cloneNode(true)
      this.#list.append(made)
      item = document.getElementById("step-now")
    }
    const thought = item.querySelector(".words")
    if (thought.textContent.length < 20000) thought.append(text)
    if (this.following) this.#toEnd()
  }

  ended() {
    this.#live = false
    document.getElementById("step-now")?.remove()
    this.follow(false)
  }

  first() { return this.#numbered()[0] }

  last() { return this.#numbered().at(-1) }

  /* Steps around the one nearest to the top of the window: for the keys. */
  neighbour(step) {
    const items = this.#numbered()
    const at = items.findIndex((item) => item === document.activeElement || item.contains(document.activeElement))
    const top = at >= 0 ? at : items.findIndex((item) => item.getBoundingClientRect().bottom > 160)
    return items[Math.min(items.length - 1, Math.max(0, at >= 0 ? at + step : top))]
  }

  async more(direction) {
    if (this.#busy) return
    const edge = direction < 0 ? this.first() : this.last()
    if (!edge) return
    this.#busy = true
    const from = direction < 0 ? Math.max(1, Number(edge.dataset.n) - PAGE) : Number(edge.dataset.n) + 1
    const count = direction < 0 ? Number(edge.dataset.n) - from : PAGE
    try {
      const answer = await fetch(`${this.address}?from=${from}&count=${count}`, { headers: { Accept: "text/html" } })
      if (answer.ok && count > 0) this.#insert(await answer.text(), direction, edge)
    } finally {
      this.#busy = false
    }
  }

  #insert(html, direction, edge) {
    const made = new DOMParser().parseFromString(html, "text/html")
    const items = [...made.querySelectorAll("li.step")].filter((item) => !document.getElementById(item.id))
    if (direction < 0) {
      const height = document.documentElement.scrollHeight
      this.#list.prepend(...items)
      scrollBy(0, document.documentElement.scrollHeight - height)
      while (this.#list.children.length > MOST_ITEMS) {
        this.#list.lastElementChild.remove()
        this.atEnd = false
      }
      if (!this.atEnd) this.follow(false)
    } else {
      edge.after(...items)
      while (this.#list.children.length > MOST_ITEMS) this.#list.firstElementChild.remove()
      this.atEnd = made.querySelector("[data-end=true]") !== null
    }
    this.#buttons()
  }

  #buttons() {
    const first = this.first()
    this.#earlier.hidden = !first || Number(first.dataset.n) <= 1
    this.#later.hidden = this.atEnd
  }

  #made(html) {
    return new DOMParser().parseFromString(`<ol>${html}</ol>`, "text/html").querySelector("li.step")
  }

  #keepOpen(old, item) {
    const open = [...old.querySelectorAll("details")].map((part) => part.open)
    item.querySelectorAll("details").forEach((part, i) => { if (open[i] !== undefined) part.open = open[i] })
  }

  #after(seq) {
    for (let item = this.#list.lastElementChild; item; item = item.previousElementSibling) {
      if (Number(item.dataset.seq) <= seq) return item.nextElementSibling
    }
    return this.#list.firstElementChild
  }

  #numbered() {
    return [...this.#list.querySelectorAll("li.step[data-n]")]
  }

  #toEnd() {
    const below = this.#below()
    if (below > -24) scrollBy({ top: below + 32, behavior: "instant" })
  }
}
