/* Keys of the run page: j k steps, g first, e end, t terminal, f follow, ? the list. Not while someone writes. */

import { show } from "../tabs.js"

export function listen(steps) {
  const help = document.getElementById("keys-help")
  document.getElementById("keys")?.addEventListener("click", () => help.showModal())
  help?.querySelector("button")?.addEventListener("click", () => help.close())

  const go = (item) => {
    if (!item) return
    steps.follow(false)
    item.tabIndex = -1
    item.focus({ preventScroll: true })
    item.scrollIntoView({ block: "center", behavior: "instant" })
  }
  const actions = {
    j: () => go(steps.neighbour(1)),
    k: () => go(steps.neighbour(-1)),
    g: () => location.assign(`${location.pathname}?from=1`),
    e: () => (steps.atEnd ? go(steps.last()) : location.assign(location.pathname)),
    f: () => steps.follow(!steps.following),
    t: () => {
      const tab = document.getElementById("tab-terminal")
      show(tab)
      tab.focus()
    },
    "?": () => help.showModal(),
  }
  addEventListener("keydown", (event) => {
    const writing = event.target.closest?.("input:not([type=radio], [type=checkbox], [type=range]), textarea, select, dialog[open]")
    if (writing || event.ctrlKey || event.metaKey || event.altKey) return
    const action = actions[event.key]
    if (!action) return
    event.preventDefault()
    action()
  })
}
