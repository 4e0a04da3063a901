// An address that ends in #KEY opens the pages without a question.
const form = document.querySelector("form.key")
if (location.hash.length > 1) {
  form.elements.key.value = decodeURIComponent(location.hash.slice(1))
  history.replaceState(null, "", location.pathname + location.search)
  form.submit()
}
