import type { Links, Path, Port, Rule } from '../../api/types';
import { useDocument, useEnded, useMayChange, useRun } from '../../data/use';
import { Loading } from '../../ui/loading';
import { TopologyPicture } from './picture';
import { ReplayState } from './replay';
import { LinkTable } from './table';

/** Maximum number of links in the diagram; larger networks have only the table. */
const mostDrawn = 12;

export function Overview() {
  const run = useRun();
  const mayChange = useMayChange();
  const ended = useEnded();
  const heading = <h1 class="sr-only">Overview</h1>;
  if (!run) {
    return (
      <>
        {heading}
        <Loading label="Loading the run" />
      </>
    );
  }
  return (
    <>
      {heading}
      {run.replay && <ReplayState />}
      {!run.replay && run.links <= mostDrawn && run.links > 0 && <DrawnTopology />}
      <LinkTable canChange={mayChange === true && !ended} />
    </>
  );
}

/** Changes add and remove links and paths, so their list is polled. */
function DrawnTopology() {
  const links = useDocument<Links>('/v1/links?limit=50', 5000).value;
  const paths = useDocument<{ paths: Path[] }>('/v1/paths', 10_000).value;
  const ports = useDocument<{ ports: Port[] }>('/v1/ports', 5000).value;
  const rules = useDocument<{ rules: Rule[] }>('/v1/rules?limit=100', 10_000).value;
  if (!links || !paths || !ports || !rules) return <Loading label="Loading topology" />;
  return (
    <TopologyPicture
      topology={{
        links: links.links,
        paths: paths.paths.slice(0, 24),
        ports: ports.ports,
        rules: rules.rules,
      }}
    />
  );
}
