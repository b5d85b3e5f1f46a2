// Kinds of artifacts (docs/reference/report.md) with their remedies.
const help: Record<string, string> = {
  late: 'Handed over later than --tolerance. Use a quieter machine or --wait spin.',
  late_start: 'Late within --grace of the start. No action is needed.',
  late_paused: 'Late only because of machine pauses. Use dedicated cores.',
  late_receiver: 'Late because the output port was full. Use a faster receiver.',
  overload:
    'Late because the network exceeds the capacity of the machine. Use fewer links or frames.',
  underlay: 'Received from another host after its release. Use a longer delay or faster underlay.',
  underlay_lost: 'Lost in transit from another host.',
  memory: 'No memory for a waiting frame. Raise --memory.',
  ring_full: 'The ring of the input port was full. Reduce the rate or use another core.',
  refused: 'Rejected by the output port.',
  send_failed: 'Accepted by the output port, but lost.',
  no_carrier: 'The output device had no carrier.',
  too_long: "Longer than the input port's slots.",
  unusable: 'Inconsistent with its offload header.',
  unrecorded: 'The recorder could not keep up. Use a faster disk.',
  behind: 'A replay read the frame after its due time. Raise --read-ahead.',
};

export function artifactHelp(kind: string): string {
  return help[kind] ?? '';
}
