/* Search and filters over the steps that are in the page; the choice stays while steps come and go. */

export function listen() {
  const form = document.getElementById("step-filter")
  const list = document.getElementById("step-list")
  if (!form) return
  const apply = () => {
    const words = form.elements.q.value.trim().toLowerCase()
    const lanes = new Set([...form.querySelectorAll("[name=lane]:checked")].map((input) => input.value))
    const errors = form.elements.errors.checked
    for (const item of list.children) {
      const lane = item.dataset.lane ?? ""
      const hidden = (lane && lane !== "eval" && lane !== "null" && !lanes.has(lane))
        || (errors && item.dataset.bad !== "true")
        || (words && !item.textContent.toLowerCase().includes(words))
      if (item.hidden !== Boolean(hidden)) item.hidden = Boolean(hidden)
    }
  }
  form.addEventListener("input", apply)
  form.addEventListener("submit", (event) => { event.preventDefault(); apply() })
  new MutationObserver(apply).observe(list, { childList: true })
}
