import type { History } from '../data/history';
import { runTime } from '../format';
import type { ChartSpec, SeriesSpec } from './spec';
import { tableOf } from './summary';

interface Props {
  spec: ChartSpec;
  series: SeriesSpec[];
  history: History;
  range: [number, number];
}

/** The values of a chart as a table. */
export function ChartTable({ spec, series, history, range }: Props) {
  const { head, rows, step_s } = tableOf(series, history, range);
  return (
    <div class="table-scroll" role="group" aria-label={`Table of ${spec.title}`} tabIndex={0}>
      <table class="data">
        <caption>
          {spec.title}: means over {step_s} s, newest first
        </caption>
        <thead>
          <tr>
            {head.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([time, ...values]) => (
            <tr key={time}>
              <th scope="row" class="num">
                {runTime(time, step_s < 1 ? 1 : 0)}
              </th>
              {values.map((value, at) => (
                <td key={at} class="num">
                  {spec.format(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
