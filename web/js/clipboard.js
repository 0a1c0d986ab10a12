// Copies text, over plain http too, where browsers have no navigator.clipboard.

/** @param {string} text @returns {Promise<boolean>} whether it was copied */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** Copies by way of a field that is selected. @param {string} text */
function copySelected(text) {
  const field = document.createElement('textarea');
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  field.value = text;
  field.readOnly = true;
  field.className = 'hidden';
  // Inside an open dialog: elements outside cannot have the focus.
  (focused?.closest('dialog') ?? document.body).append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  focused?.focus();
  return done;
}
