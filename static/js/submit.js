/* The submit page: a running count of runs, a chosen file shown in the text box before it is sent, one sending. */

const form = document.getElementById("submit-form")
const count = () => {
  const tasks = form.querySelectorAll("[name=tasks]:checked").length
  document.getElementById("n-tasks").textContent = tasks
  const repeats = Math.max(1, Number(form.elements.repeats.value) || 1)
  document.getElementById("n-runs").textContent = tasks * repeats
}
form.addEventListener("change", count)
form.elements.repeats.addEventListener("input", count)
form.elements.file.addEventListener("change", async () => {
  const file = form.elements.file.files[0]
  if (!file || file.size > 65536) return
  try {
    form.elements.config.value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer())
  } catch {
    return // not UTF-8: the file stays chosen, and the server says what is wrong with it
  }
  form.elements.file.value = ""
})

/* The buttons rest while the form is on its way. The server too queues one form once. */
let resting = false
const rest = (now) => {
  resting = now
  for (const button of form.querySelectorAll("button")) button.disabled = now
}
form.addEventListener("submit", (event) => {
  if (resting) return event.preventDefault()
  resting = true
  setTimeout(() => rest(true)) // later: a disabled button's name would not be sent
  setTimeout(() => rest(false), 10_000) // an answer that never came
})
addEventListener("pageshow", () => rest(false))
count()
