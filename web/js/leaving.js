// Whether the page is being left: what fails then has not failed by itself.

let is = false;
for (const event of ['beforeunload', 'pagehide']) addEventListener(event, () => { is = true; });
addEventListener('pageshow', () => { is = false; });
// A page that was not left after all, as when a file is saved, is asked again.
addEventListener('beforeunload', () => setTimeout(() => { is = false; }, 2000));

export const leaving = () => is;
