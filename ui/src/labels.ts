// Where the words of a lane go, so that none lies on another: beside their mark, above it, or nowhere.

const [CAPITAL, LETTER] = [8.6, 6.5];

/** About how wide a text is, in pixels: rather too wide than too narrow. */
export const textWidth = (text: string): number => [...text].reduce((sum, each) => sum + (each >= "A" && each <= "Z" ? CAPITAL : each.charCodeAt(0) > 0x2e7f ? 12 : LETTER), 4);

/** What is taken of the two lines of a lane: the upper one has its name, the lower one bars and marks. */
export class Taken {
  private lines: [number, number][][] = [[], []];

  constructor(private width: number) {}

  take(line: 0 | 1, from: number, to: number): void {
    this.lines[line]!.push([from, to]);
  }

  private free(line: 0 | 1, from: number, to: number): boolean {
    return from >= 0 && to <= this.width && this.lines[line]!.every(([a, b]) => to <= a || from >= b);
  }

  /** The first of these places that is free; it is taken then. `[line, from]` in pixels. */
  place(text: string, places: [0 | 1, number][]): [0 | 1, number] | null {
    const wide = textWidth(text);
    const found = places.find(([line, from]) => this.free(line, from, from + wide)) ?? null;
    if (found) this.take(found[0], found[1], found[1] + wide);
    return found;
  }

  /** A place in the lower line between two points, as far to the left as there is one. */
  within(text: string, from: number, to: number): number | null {
    const starts = [from, ...this.lines[1]!.map(([, b]) => b + 2).filter((b) => b > from)].sort((a, b) => a - b);
    const found = starts.find((start) => start + textWidth(text) <= to && this.free(1, start, start + textWidth(text)));
    if (found === undefined) return null;
    this.take(1, found, found + textWidth(text));
    return found;
  }
}
