import type { Problem } from './types';

/** A refused or failed request. `status` is 0 if there was no response. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly problems: Problem[] = [],
    readonly retryAfter_s: number | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

export type Fetch = (input: string, init?: RequestInit) => Promise<Response>;

export interface RequestOptions {
  method?: string;
  body?: unknown;
  signal?: AbortSignal;
}

/** Converts a non-2xx response to the error that it describes. */
export async function refusal(response: Response): Promise<ApiError> {
  const wait = Number(response.headers.get('Retry-After'));
  const retryAfter_s = Number.isFinite(wait) && wait > 0 ? wait : null;
  try {
    const body = (await response.json()) as { error?: string; problems?: Problem[] };
    const message = body.error ?? `status ${response.status}`;
    return new ApiError(response.status, message, body.problems ?? [], retryAfter_s);
  } catch {
    return new ApiError(response.status, `status ${response.status}`, [], retryAfter_s);
  }
}

/** Client of the control API, with a token. */
export class Client {
  constructor(
    private readonly fetch: Fetch,
    private readonly token: string,
  ) {}

  /** Sends a request and returns the response if its status is 2xx. */
  async open(path: string, options: RequestOptions = {}): Promise<Response> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.token}` };
    const init: RequestInit = { method: options.method ?? 'GET', headers, cache: 'no-store' };
    if (options.body !== undefined) {
      headers['Content-Type'] = 'application/json';
      init.body = JSON.stringify(options.body);
    }
    if (options.signal) init.signal = options.signal;
    let response: Response;
    try {
      response = await this.fetch(path, init);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new ApiError(0, 'the run does not respond');
    }
    if (!response.ok) throw await refusal(response);
    return response;
  }

  async json<T>(path: string, options: RequestOptions = {}): Promise<T> {
    const response = await this.open(path, options);
    try {
      return (await response.json()) as T;
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new ApiError(0, 'the response was truncated');
    }
  }
}

/** Returns a pattern for `match=`; a word without wildcards matches anywhere in a name. */
export function searchPattern(text: string): string {
  const word = text.trim();
  if (word === '' || /[*?]/.test(word)) return word;
  return `*${word}*`;
}
