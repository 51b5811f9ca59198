/* One connection per page: subscribes, comes back by itself, and always asks for what came after the last thing it has seen. */

const FIRST_WAIT_MS = 400
const LONGEST_WAIT_MS = 15000

export class Socket {
  #handlers
  #wanted = new Map() // key -> function that makes the subscription, asked again at every connection
  #socket = null
  #wait = FIRST_WAIT_MS
  #timer = 0
  #closed = false

  /* handlers: message(object), state("connecting" | "live" | "lost", seconds until the next try) */
  constructor(handlers) {
    this.#handlers = handlers
    addEventListener("online", () => this.retryNow())
    addEventListener("pagehide", () => this.#socket?.close())
    addEventListener("pageshow", (event) => { if (event.persisted) this.retryNow() })
  }

  want(key, subscription) {
    this.#wanted.set(key, subscription)
    if (this.#socket?.readyState === WebSocket.OPEN) this.#send(subscription())
  }

  drop(key, message) {
    this.#wanted.delete(key)
    if (this.#socket?.readyState === WebSocket.OPEN) this.#send(message)
  }

  open() {
    if (this.#closed) return
    clearTimeout(this.#timer)
    this.#handlers.state("connecting", 0)
    const address = new URL("/ws/", location.href)
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:"
    const socket = new WebSocket(address)
    this.#socket = socket
    socket.addEventListener("open", () => {
      for (const subscription of this.#wanted.values()) this.#send(subscription())
    })
    socket.addEventListener("message", (event) => {
      if (socket !== this.#socket) return
      this.#wait = FIRST_WAIT_MS
      this.#handlers.state("live", 0)
      this.#handlers.message(JSON.parse(event.data))
    })
    socket.addEventListener("close", () => { if (socket === this.#socket) this.#again() })
  }

  close() {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#socket?.close()
  }

  retryNow() {
    if (this.#closed || this.#socket?.readyState === WebSocket.OPEN) return
    this.#wait = FIRST_WAIT_MS
    this.#socket?.close()
    this.open()
  }

  #again() {
    this.#socket = null
    if (this.#closed) return
    const wait = this.#wait * (0.75 + Math.random() / 2)
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT_MS)
    this.#handlers.state("lost", Math.ceil(wait / 1000))
    this.#timer = setTimeout(() => this.open(), wait)
  }

  #send(message) {
    this.#socket.send(JSON.stringify(message))
  }
}
