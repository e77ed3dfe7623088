// Plays a story: a moment that runs, stops and is dragged.

import { useEffect, useState } from "preact/hooks";
import { seconds } from "./lanes";
import { calm } from "./store";
import { t } from "./texts";

const SPEEDS = [2, 1, 0.5, 0.2, 0.05];

/** `from` and `to` in seconds of the story; it begins to play by itself each time `begin` changes, unless motion is reduced. */
export function usePlayer(from: number, to: number, begin: number) {
  const [at, setAt] = useState(Infinity);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  useEffect(() => {
    if (!begin) return;
    setAt(calm.matches ? to : from);
    setPlaying(!calm.matches);
  }, [begin]);
  useEffect(() => {
    if (!playing) return;
    // By the time that has passed: in a slow browser, or a tab behind others, timers come late.
    let last = performance.now();
    const timer = setInterval(() => {
      const passed = performance.now() - last;
      last += passed;
      setAt((now) => {
        const then = now + (passed / 1000) * speed;
        if (then < to) return then;
        setPlaying(false);
        return to;
      });
    }, calm.matches ? 500 : 40);
    return () => clearInterval(timer);
  }, [playing, speed, to]);
  const play = () => {
    if (!playing && at >= to) setAt(from);
    setPlaying(!playing);
  };
  const drag = (value: number) => (setPlaying(false), setAt(value));
  return { at: Math.min(Math.max(at, from), to), playing, speed, setSpeed, play, drag, from, to };
}

export function Player({ player }: { player: ReturnType<typeof usePlayer> }) {
  const { at, playing, speed, setSpeed, play, drag, from, to } = player;
  return (
    <div class="player">
      <button id="play" aria-pressed={playing} onClick={play}>{playing ? t("pause") : t("play")}</button>
      <label>{t("speed")}
        <select id="speed" value={speed} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
          {SPEEDS.map((each) => <option key={each} value={each}>{each} ×</option>)}
        </select>
      </label>
      <label class="scrub">{t("moment")}
        <input id="scrub" type="range" min={from} max={to} step="any" value={at} aria-valuetext={`${seconds(at)} s`}
          onInput={(event) => drag(Number(event.currentTarget.value))} />
      </label>
      <output id="clock">{seconds(at)} s</output>
    </div>
  );
}
