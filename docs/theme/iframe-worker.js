// Browsers start no worker from a file. Where the site is read from the file system, the search
// therefore runs in a hidden frame that behaves as a worker would.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      // Firefox would replace an untouched empty document, and what is in it, a moment later.
      inside.document.open()
      inside.document.write("<!doctype html>")
      inside.document.close()
      // What the worker says, the page hears.
      inside.postMessage = data => {
        this.dispatchEvent(new MessageEvent("message", { data }))
      }
      const script = inside.document.createElement("script")
      script.src = url
      const loaded = new Promise(resolve => { script.onload = resolve })
      inside.document.head.append(script)
      // What the page says, the worker hears, in the order in which it was said.
      this.postMessage = data => {
        loaded.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })))
      }
    }
  }
}
