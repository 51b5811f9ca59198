/* The strip grows with the run: a mark per new step; positions are shares of the count, so everything moves over. */

const TOP = { eval: 0, command: 13, file: 26, read: 39, think: 52, wait: 65, null: 52 }

export class Strip {
  #svg = document.querySelector(".stripbox .strip")
  #inner = this.#svg?.querySelector("svg")
  #unit = Number(this.#svg?.dataset.unit ?? 1)
  #steps = Number(this.#svg?.dataset.steps ?? 0)
  #drawn = Number(this.#svg?.dataset.steps ?? 0)

  /* items: new steps `{n, lane}`; scores: every evaluation so far `{step, score}`. */
  put(items, scores) {
    if (!this.#svg) return
    for (const { n, lane } of items) {
      if (!n || n <= this.#drawn || !(lane in TOP)) continue
      this.#drawn = n
      const at = Math.floor((n - 1) / this.#unit) + 0.5
      const path = this.#inner.querySelector(`.fam.${lane}`)
      path?.setAttribute("d", `${path.getAttribute("d")}M${at} ${TOP[lane] + 1.5}v9`)
    }
    if (this.#drawn !== this.#steps) this.#stretch(this.#drawn)
    this.#score(scores)
  }

  #stretch(steps) {
    const before = this.#steps
    this.#steps = steps
    const height = this.#svg.getAttribute("height")
    this.#inner.setAttribute("viewBox", `0 0 ${Math.max(1, Math.ceil(steps / this.#unit))} ${height}`)
    for (const line of this.#svg.querySelectorAll(".foldm")) {
      const at = `${(parseFloat(line.getAttribute("x1")) * before) / steps}%`
      line.setAttribute("x1", at)
      line.setAttribute("x2", at)
    }
    if (this.#svg.querySelectorAll(".step-no").length === 1 && steps > 1) {
      this.#svg.append(this.#made("text", { class: "step-no e", x: "100%", y: Number(height) + 20 }))
    }
    const marks = this.#svg.querySelectorAll(".step-no")
    marks.forEach((text, i) => {
      const last = i === marks.length - 1 && i > 0
      if (last) text.textContent = steps
      else if (i > 0) text.setAttribute("x", `${(100 * (Number(text.textContent) - 0.5)) / steps}%`)
    })
  }

  #score(scores) {
    const box = this.#svg.querySelector(".scores")
    if (!box || !this.#steps) return
    const height = Number(this.#svg.getAttribute("height"))
    box.replaceChildren(...scores.filter(({ step }) => step > 0).flatMap(({ step, score }) => {
      const x = `${(100 * (step - 0.5)) / this.#steps}%`
      const line = this.#made("line", { class: "evm", x1: x, x2: x, y1: -3, y2: height + 3 })
      const dot = this.#made("circle", { class: "evd", cx: x, cy: 6.5, r: 3.5 })
      const text = this.#made("text", { class: "m ev", x, y: -9 })
      text.textContent = score
      return [line, dot, text]
    }))
  }

  #made(name, attributes) {
    const part = document.createElementNS("http://www.w3.org/2000/svg", name)
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value)
    return part
  }
}
