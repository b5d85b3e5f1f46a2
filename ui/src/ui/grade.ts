import type { Grade } from '../api/types';

/** Returns the shade for a grade and its verdict. */
export function shade(grade: Grade): 'good' | 'warn' | 'bad' {
  switch (grade) {
    case 'faithful':
      return 'good';
    case 'not-faithful':
      return 'bad';
    default:
      return 'warn';
  }
}
