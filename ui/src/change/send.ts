import type { Client } from '../api/client';
import type { Change, Changed, Link, Links } from '../api/types';
import { Store } from '../data/store';
import { targetsOf } from './describe';
import { pushEntry, type UndoEntry, undoOf } from './undo';

/** Maximum number of links whose options before a change are kept for undo. */
const mostLinks = 1000;

export const undoStore = new Store<UndoEntry[]>('longwire-undo', []);

/** Returns the links that a change affects; null if there are too many. */
async function linksOf(client: Client, change: Change): Promise<Link[] | null> {
  const links = new Map<string, Link>();
  const patterns = new Set(targetsOf(change).map((name) => name.replace(/\.(up|down)$/, '')));
  for (const pattern of patterns) {
    const page = await client.json<Links>(
      `/v1/links?match=${encodeURIComponent(pattern)}&limit=${mostLinks}`,
    );
    for (const link of page.links) links.set(link.name, link);
    if (page.next !== null || links.size > mostLinks) return null;
  }
  return [...links.values()];
}

/** Applies a change and keeps its undo entry. */
export async function send(client: Client, change: Change): Promise<Changed> {
  const before = await linksOf(client, change);
  const changed = await client.json<Changed>('/v1/changes', { method: 'POST', body: change });
  const undo = before && undoOf(change, before);
  if (undo) undoStore.set(pushEntry(undoStore.get(), change, changed.at_ns, undo));
  return changed;
}

/** Undoes a change. */
export async function takeBack(client: Client, entry: UndoEntry): Promise<void> {
  if (targetsOf(entry.undo).length > 0) await send(client, entry.undo);
  undoStore.set(undoStore.get().filter((each) => each.at_ns !== entry.at_ns));
}
