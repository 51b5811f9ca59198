/* Theme: the system's unless one was chosen. Loaded before the page is painted, so that nothing flashes. */
"use strict"

{
  const root = document.documentElement
  const stored = () => { try { return localStorage.getItem("theme") } catch { return null } }
  const keep = (theme) => { try { localStorage.setItem("theme", theme) } catch { /* private window: for this page only */ } }
  const chosen = stored()
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen
  root.classList.add("js")

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches
    root.dataset.theme = dark ? "light" : "dark"
    keep(root.dataset.theme)
    root.dispatchEvent(new CustomEvent("themechange", { bubbles: true }))
  })
}
