// Small things that the page stores: for this tab alone, until it is closed, or kept on this
// device.

/** @param {Storage} store @param {string} name @param {any} fallback */
function read(store, name, fallback) {
  try {
    return JSON.parse(store.getItem(`lutra.${name}`) ?? 'null') ?? fallback;
  } catch {
    return fallback; // written by another version
  }
}

/** @param {Storage} store @param {string} name @param {any} value null deletes it @returns {boolean} whether it is stored */
function write(store, name, value) {
  try {
    if (value === null) store.removeItem(`lutra.${name}`);
    else store.setItem(`lutra.${name}`, JSON.stringify(value));
    return true;
  } catch {
    return false; // full or forbidden: the page works without
  }
}

/** A browser may forbid storage: then reading the property throws. @param {() => Storage} store @returns {Storage} */
function allowed(store) {
  try {
    return store();
  } catch {
    return /** @type {any} */ (null);
  }
}
const tab = allowed(() => sessionStorage);
const device = allowed(() => localStorage);

/** What this tab has. @param {string} name @param {any} fallback */
export const recall = (name, fallback) => read(tab, name, fallback);
/** @param {string} name @param {any} value null deletes it */
export const remember = (name, value) => write(tab, name, value);
/** What this device has. @param {string} name @param {any} fallback */
export const kept = (name, fallback) => read(device, name, fallback);
/** @param {string} name @param {any} value null deletes it */
export const keep = (name, value) => write(device, name, value);
