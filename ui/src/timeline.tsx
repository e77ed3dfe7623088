// The picture of a Pod's end, to zoom and to walk through.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Lanes, type LanesProps, scaleOf, TOP } from "./lanes";
import { t } from "./texts";

interface Props extends LanesProps {
  /** To the next record, or to the one before. */
  walk: (by: number) => void;
  seek: (at: number) => void;
}

const [STEP, MOST] = [1.5, 200];

export function Timeline(props: Props) {
  const { at, live, walk, seek } = props;
  const view = useRef<HTMLDivElement>(null);
  const anchor = useRef<[share: number, pixels: number] | null>(null);
  const [zoom, setZoom] = useState(1);
  const scale = scaleOf(props);
  const turn = (to: number, clientX?: number) => {
    const { left, width } = view.current!.getBoundingClientRect();
    const pixels = clientX === undefined ? width / 2 : clientX - left;
    anchor.current = [(view.current!.scrollLeft + pixels) / view.current!.scrollWidth, pixels];
    setZoom(Math.min(MOST, Math.max(1, to)));
  };
  useLayoutEffect(() => {
    const [share, pixels] = anchor.current ?? [0, 0];
    view.current!.scrollLeft = share * view.current!.scrollWidth - pixels;
  }, [zoom]);
  useEffect(() => {
    const { scrollLeft, clientWidth, scrollWidth } = view.current!;
    const here = scale.place(at) * scrollWidth;
    if (zoom > 1 && (here < scrollLeft + 30 || here > scrollLeft + clientWidth - 60)) view.current!.scrollLeft = here - clientWidth / 2;
  }, [at]);
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = ({
      ArrowLeft: () => walk(-1), ArrowRight: () => walk(1), Home: () => walk(-1e9), End: () => walk(1e9), "+": () => turn(zoom * STEP), "-": () => turn(zoom / STEP),
    } as Record<string, () => void>)[event.key];
    if (act) (event.preventDefault(), act());
  };
  const drag = (event: PointerEvent) => {
    const { left, top } = view.current!.getBoundingClientRect();
    if (event.buttons === 1 && event.clientY - top < TOP) seek(scale.moment((event.clientX - left + view.current!.scrollLeft) / view.current!.scrollWidth));
  };
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    turn(zoom * Math.exp(-event.deltaY / 300), event.clientX);
  };
  return (
    <>
      <div class="player zoom">
        <button aria-label={t("before")} onClick={() => walk(-1)}>‹</button>
        <button aria-label={t("after")} onClick={() => walk(1)}>›</button>
        <button aria-label={t("zoomOut")} disabled={zoom === 1} onClick={() => turn(zoom / STEP)}>−</button>
        <button aria-label={t("zoomIn")} onClick={() => turn(zoom * STEP)}>+</button>
        <button disabled={zoom === 1} onClick={() => turn(1)}>{t("fit")}</button>
        <span class="hint">{t("walkHelp")}</span>
      </div>
      <div class="view" ref={view} tabIndex={0} role="region" aria-label={`${t("picture")}: ${props.story.name}`} onKeyDown={key} onPointerDown={drag} onPointerMove={drag} onWheel={wheel}>
        <Lanes {...props} live={live} zoom={zoom} />
      </div>
    </>
  );
}
