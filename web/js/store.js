// What the page remembers: until the tab is closed, and on this machine alone.

/** @param {string} name @param {any} fallback */
export function recall(name, fallback) {
  try {
    return JSON.parse(sessionStorage.getItem(`lutra.${name}`) ?? 'null') ?? fallback;
  } catch {
    return fallback; // no storage here, or not written by this version
  }
}

/** @param {string} name @param {any} value null forgets @returns {boolean} whether it is remembered */
export function remember(name, value) {
  try {
    if (value === null) sessionStorage.removeItem(`lutra.${name}`);
    else sessionStorage.setItem(`lutra.${name}`, JSON.stringify(value));
    return true;
  } catch {
    return false; // full or forbidden: the page works without a memory
  }
}
