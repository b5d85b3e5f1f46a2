import { useEffect, useState } from 'preact/hooks';
import type { Status } from '../data/topics';
import { useConnection } from '../data/use';
import { clock } from '../format';

/** Describes a connection problem; empty without one. */
export function ConnectionBanner({ status }: { status: Status }) {
  return (
    <div class="banners" role="status">
      <BannerText status={status} />
    </div>
  );
}

function BannerText({ status }: { status: Status }) {
  const since = clock(new Date(status.since_ms));
  switch (status.phase) {
    case 'connecting':
    case 'live':
      return null;
    case 'ended':
      return (
        <div class="banner">
          <p>
            <strong>The run has ended</strong> ({since}). Received data remains available.
          </p>
        </div>
      );
    case 'denied':
      return (
        <div class="banner banner-bad">
          <p>
            <strong>The run refuses this token</strong>: {status.reason}. Open the URL printed by
            the run at this port.
          </p>
          <Retry />
        </div>
      );
    case 'lost':
      return (
        <div class="banner banner-bad">
          <p>
            <strong>Connection lost</strong> at {since}: {status.reason}. The data shown is
            outdated. <NextTry status={status} />
          </p>
          <Retry />
        </div>
      );
  }
}

function Retry() {
  const { source } = useConnection();
  return (
    <button type="button" onClick={() => source.retry()}>
      Retry now
    </button>
  );
}

/** A countdown, hidden from screen readers, which would read every second. */
function NextTry({ status }: { status: Status }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const id = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(id);
  }, []);
  if (status.retryAt_ms === null) return null;
  const wait = Math.ceil((status.retryAt_ms - now) / 1000);
  return (
    <span aria-hidden="true">
      {wait > 0 ? `Try ${status.failures + 1} in ${wait} s.` : 'Retrying …'}
    </span>
  );
}
