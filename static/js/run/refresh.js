/* Parts that depend on who looks (controls) or on samples (machine): fetched again with the page they belong to. */

let busy = false

export async function refresh(...ids) {
  if (busy || document.querySelector("#run-controls details[open]")) return
  busy = true
  try {
    const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } })
    if (!answer.ok) return
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html")
    for (const id of ids) {
      const made = fresh.getElementById(id)
      if (made) document.getElementById(id)?.replaceChildren(...made.childNodes)
    }
  } finally {
    busy = false
  }
}
