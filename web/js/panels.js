// The drawer of the settings, of what plans reach and cost, and of the engine.

import { byId } from './dom.js';
import { Drawer } from './drawer.js';

const drawer = new Drawer('panels', '(min-width: 60rem)');
drawer.settle(false);
byId('show-engine').addEventListener('click', () => showPanel('engine'));

/** Opens a panel. @param {string} id */
export function showPanel(id) {
  drawer.show();
  byId(id).open = true;
}

/** Gives way to the conversation. */
export const hidePanels = () => drawer.yield();
