/* The live run page. The page as served is whole without it; this keeps it up to date. */

import "../tabs.js"
import { Head } from "./head.js"
import * as filter from "./filter.js"
import * as keys from "./keys.js"
import { refresh } from "./refresh.js"
import { Socket } from "./socket.js"
import { Strip } from "./strip.js"
import { Steps } from "./steps.js"
import { Terminals } from "./terminal.js"

const box = document.getElementById("run")
const run = Number(box.dataset.run)
let seen = Number(box.dataset.last) // highest seq that is in the page; the server is asked for what came after it

const head = new Head()
const steps = new Steps()
const strip = new Strip()
let terminals = null
let stood = ""

function onEvents(message) {
  const first = message.events[0]?.seq
  if (message.last < seen || (message.last === seen && message.events.length > 0)) return // came twice
  if (first > seen + 1) { // a hole: ask again from what is here
    socket.want("run", subscription)
    return
  }
  const fresh = message.events.filter((event) => event.seq > seen)
  seen = message.last
  steps.put(message.steps)
  head.events(fresh)
  if (message.head) {
    const stands = `${message.head.ended} ${message.head.waiting === "paused"}`
    if (stood && stood !== stands) refresh("run-controls", "machine")
    stood = stands
    if (head.put(message.head)) steps.ended()
    strip.put(message.steps, message.head.scores ?? [])
    terminals?.sessions(message.head.sessions ?? [])
  }
  box.dataset.last = seen
}

const subscription = () => ({ type: "subscribe", run, after: seen, language: document.documentElement.lang })
const receivers = {
  events: onEvents,
  delta: (message) => steps.delta(message.text),
  terminal: (message) => terminals?.message(message),
  error: (message) => { if (["not_found", "forbidden"].includes(message.code)) socket.close() },
}
const socket = new Socket({
  message: (message) => receivers[message.type]?.(message),
  state: (state, seconds) => head.connection(state, seconds),
})

terminals = new Terminals(run, socket)
socket.want("run", subscription)
socket.open()
keys.listen(steps)
filter.listen()
document.addEventListener("tabshown", (event) => { if (event.target.id === "tab-machine") refresh("machine") })
document.getElementById("retry-now")?.addEventListener("click", () => socket.retryNow())
document.querySelector(".scrub")?.addEventListener("change", (event) => {
  const item = document.getElementById(`step-${event.target.value}`)
  if (item) item.scrollIntoView({ block: "center" })
  else location.assign(`${location.pathname}?from=${event.target.value}`)
})
