import type { Grade } from '../api/types';

/** Returns the shade of a grade, which is that of its verdict. */
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
