/* Tab lists. Without script every panel shows, one under the other; with it one at a time, arrows move between them. */

export function show(tab) {
  const list = tab.closest("[role=tablist]")
  for (const other of list.querySelectorAll("[role=tab]")) {
    const on = other === tab
    other.setAttribute("aria-selected", String(on))
    other.tabIndex = on ? 0 : -1
    document.getElementById(other.getAttribute("aria-controls")).hidden = !on
  }
  tab.dispatchEvent(new CustomEvent("tabshown", { bubbles: true }))
}

function onKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
  const tab = event.target.closest("[role=tab]")
  if (!step || !tab) return
  const tabs = [...tab.closest("[role=tablist]").querySelectorAll("[role=tab]")]
  const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length]
  show(next)
  next.focus()
}

for (const list of document.querySelectorAll("[role=tablist]")) {
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]")
    if (tab) show(tab)
  })
  list.addEventListener("keydown", onKey)
  const first = list.querySelector("[aria-selected=true]") ?? list.querySelector("[role=tab]")
  if (first) show(first)
}

// A link to a panel that another one hides brings it to the front before the browser jumps to it.
document.addEventListener("click", (event) => {
  const name = event.target.closest("a[href^='#']")?.hash.slice(1)
  const tab = name && document.querySelector(`[role=tab][aria-controls="${CSS.escape(name)}"]`)
  if (tab) show(tab)
})
