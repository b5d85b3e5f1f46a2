import type { ToTab, ToWorker } from './protocol';
import type { Listener, Source, Topic } from './topics';

/** The used subset of a worker's port. */
export interface PortLike {
  postMessage(message: ToWorker): void;
  onmessage: ((event: MessageEvent<ToTab>) => void) | null;
}

/** The source of a tab with a shared connection. */
export class SharedSource implements Source {
  private readonly listeners = new Map<number, Listener>();
  private nextId = 1;

  constructor(
    private readonly port: PortLike,
    private readonly onToken: (token: string | null) => void,
  ) {
    port.onmessage = (event) => this.received(event.data);
  }

  subscribe(topic: Topic, listener: Listener): () => void {
    const id = this.nextId;
    this.nextId += 1;
    this.listeners.set(id, listener);
    this.port.postMessage({ kind: 'subscribe', id, topic });
    return () => {
      if (this.listeners.delete(id)) this.port.postMessage({ kind: 'unsubscribe', id });
    };
  }

  retry(): void {
    this.port.postMessage({ kind: 'retry' });
  }

  private received(message: ToTab): void {
    if (message.kind === 'token') this.onToken(message.token);
    else this.listeners.get(message.id)?.(message.update);
  }
}
