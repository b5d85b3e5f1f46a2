import type { Flows, Link } from '../api/types';
import { useDocument } from '../data/use';
import { bitRate, byteCount, count, duration, percent, shortCount } from '../format';
import { Loading } from '../ui/loading';
import { LinkHead } from './link/head';
import { splitDirection } from './link/link';

/** The largest flows of a direction. The run counts flows only while this view polls them. */
export function FlowsView({ direction: name }: { direction: string }) {
  const { link: linkName, direction } = splitDirection(name);
  const full = `${linkName}.${direction}`;
  const link = useDocument<Link>(`/v1/links/${encodeURIComponent(linkName)}`, 2000);
  const flows = useDocument<Flows>(`/v1/flows/${encodeURIComponent(full)}`, 1000);
  return (
    <>
      <LinkHead name={linkName} direction={direction} link={link.value} view="flows" />
      {flows.failure && <p class="problem">{flows.failure.message}</p>}
      {!flows.value && !flows.failure && <Loading label="Loading flows" />}
      {flows.value && <FlowTable flows={flows.value} />}
    </>
  );
}

function FlowTable({ flows }: { flows: Flows }) {
  const erring = flows.flows.some(({ error_packets }) => error_packets > 0);
  return (
    <section aria-labelledby="flows-title">
      <h2 id="flows-title">Largest flows</h2>
      <p class="more">
        {count(flows.packets)} frames in {duration(flows.elapsed_s - flows.since_s)}, counted only
        while this view is open. Shows at most 20 flows (Space-Saving sketch)
        {erring && '; counts may be too high by the number after ±'}.
      </p>
      <div class="table-scroll" role="group" aria-label="Largest flows" tabIndex={0}>
        <table class="data flows">
          <thead>
            <tr>
              <th scope="col">Flow</th>
              <th scope="col">Rate</th>
              <th scope="col">Share</th>
              <th scope="col">Frames</th>
              <th scope="col">Bytes</th>
            </tr>
          </thead>
          <tbody>
            {flows.flows.map((flow) => (
              <tr key={flow.flow}>
                <th scope="row">
                  <code>{flow.flow}</code>
                </th>
                <td class="num">{bitRate(flow.bits_per_s)}</td>
                <td class="num share">
                  <span class="share-bar" style={{ width: `${Math.min(1, flow.share) * 100}%` }} />
                  <span>{percent(flow.share)}</span>
                </td>
                <td class="num">
                  {shortCount(flow.packets)}
                  {flow.error_packets > 0 && ` ±${shortCount(flow.error_packets)}`}
                </td>
                <td class="num">{byteCount(flow.bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {flows.flows.length === 0 && <p class="empty">No frames counted yet.</p>}
    </section>
  );
}
