// What the page stores: until the tab is closed, on this machine alone.

/** @param {string} name @param {any} fallback */
export function recall(name, fallback) {
  try {
    return JSON.parse(sessionStorage.getItem(`lutra.${name}`) ?? 'null') ?? fallback;
  } catch {
    return fallback; // no storage, or written by another version
  }
}

/** @param {string} name @param {any} value null deletes it @returns {boolean} whether it is stored */
export function remember(name, value) {
  try {
    if (value === null) sessionStorage.removeItem(`lutra.${name}`);
    else sessionStorage.setItem(`lutra.${name}`, JSON.stringify(value));
    return true;
  } catch {
    return false; // full or forbidden: the page works without
  }
}
