// Kinds of artifacts, as in docs/reference/report.md, with their remedies.
const help: Record<string, string> = {
  late: 'Handed over later than --tolerance. A quieter machine or --wait spin helps.',
  late_start: 'Late within --grace of the start. Nothing needs to be done.',
  late_paused: 'Late only by pauses of the machine. Dedicated cores help.',
  late_receiver: 'Late because the output port was full. A faster receiver helps.',
  overload:
    'Late because the network carries more than the machine can. Fewer links or frames help.',
  underlay: 'Came from another host after its release. A longer delay or a faster underlay helps.',
  underlay_lost: 'Lost on the way from another host.',
  memory: 'No memory was left for a waiting frame. More --memory helps.',
  ring_full: 'The ring of the input port was full. A lower rate or another core helps.',
  refused: 'The output port did not take the frame.',
  send_failed: 'The output port took the frame and lost it.',
  no_carrier: 'The output device had no carrier.',
  too_long: 'Longer than the slots of the input port.',
  unusable: 'Contradicted what its sender left unfinished.',
  unrecorded: 'The recorder could not keep up. A faster disk helps.',
  behind: 'A replay read the frame after it was due. More --read-ahead helps.',
};

export function artifactHelp(kind: string): string {
  return help[kind] ?? '';
}
