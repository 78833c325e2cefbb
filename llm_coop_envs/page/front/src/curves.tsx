// Lines over rounds: an episode's course, or those of two.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { exact } from "./parts";

// Rounds are whole: no line of the grid stands between two.
const WHOLE = [...Array(9).keys()].flatMap((power) => [1, 2, 5].map((one) => one * 10 ** power));

export interface Curve {
  name: string;
  values: (number | null)[];
  colour: string; // a custom property, such as --c0
  dashed?: boolean;
  strong?: boolean;
}

interface Drawn {
  rounds: number[];
  curves: Curve[];
  label: string;
  height?: [number, number]; // least and most
  levels?: { label: string; value: number }[];
  band?: [number, number] | null;
  cursor?: number; // a round
  zero?: boolean;
  pick?: (index: number) => void;
}

function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// How often the colours changed, and how wide an element is.
function useLooks() {
  const box = useRef<HTMLDivElement>(null);
  const [themed, again] = useState(0);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const change = () => again((count) => count + 1);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("themed", change);
    scheme.addEventListener("change", change);
    const look = new ResizeObserver(() => box.current && setWidth(box.current.clientWidth));
    look.observe(box.current!);
    return () => {
      window.removeEventListener("themed", change);
      scheme.removeEventListener("change", change);
      look.disconnect();
    };
  }, []);
  return { box, themed, width };
}

export function Curves({ rounds, curves, label, height = [220, 420], levels = [], band = null, cursor, zero = false, pick }: Drawn) {
  const { box, themed, width } = useLooks();
  const plot = useRef<uPlot | null>(null);
  const at = useRef(cursor);
  const picked = useRef(pick);
  picked.current = pick;
  const content = JSON.stringify([rounds, curves, levels, band, zero]);
  useEffect(() => {
    at.current = cursor;
    plot.current?.redraw(false);
  }, [cursor]);
  useEffect(() => {
    if (!width || !box.current || !rounds.length) return;
    const every = [...curves.flatMap((curve) => curve.values), ...levels.map((level) => level.value), ...(band ?? []), ...(zero ? [0] : [])].filter((value): value is number => value !== null);
    let low = Infinity, high = -Infinity;
    for (const value of every) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (low > high) [low, high] = [0, 1];
    const edge = (high - low || Math.abs(high) || 1) * 0.08;
    const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") }, font: "11px system-ui" };
    const first = rounds[0], last = rounds[rounds.length - 1];
    const wide = (_: uPlot, values: string[] | null) => Math.max(34, 16 + 7 * Math.max(0, ...(values ?? []).map((value) => value.length)));
    const whole = (_: uPlot, splits: number[]) => splits.map((value) => (Number.isInteger(value) ? value.toLocaleString("en") : ""));
    const drawn = new uPlot(
      {
        width,
        height: Math.max(height[0], Math.min(height[1], width * 0.5)),
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: { x: { time: false, range: [first, Math.max(last, first + 1)] }, y: { range: [low - edge, high + edge] } },
        axes: [{ ...axis, label: "round", labelSize: 16, labelFont: "11px system-ui", size: 32, values: whole, incrs: WHOLE }, { ...axis, size: wide }],
        series: [
          {},
          ...curves.map((curve) => ({
            stroke: css(curve.colour), width: curve.strong ? 3 : 1.5, dash: curve.dashed ? [6, 4] : undefined, points: { show: rounds.length < 40, size: 4 },
          })),
        ],
        hooks: {
          drawClear: [(u) => {
            const left = u.bbox.left, across = u.bbox.width;
            if (band) {
              const top = u.valToPos(band[1], "y", true), bottom = u.valToPos(band[0], "y", true);
              u.ctx.fillStyle = css("--band");
              u.ctx.fillRect(left, top, across, bottom - top);
            }
            u.ctx.save();
            u.ctx.strokeStyle = css("--quiet");
            for (const { value, dash } of [...levels.map((level) => ({ ...level, dash: [4, 4] })), ...(zero ? [{ value: 0, dash: [] }] : [])]) {
              const y = u.valToPos(value, "y", true);
              u.ctx.setLineDash(dash);
              u.ctx.beginPath();
              u.ctx.moveTo(left, y);
              u.ctx.lineTo(left + across, y);
              u.ctx.stroke();
            }
            u.ctx.restore();
          }],
          draw: [(u) => {
            u.ctx.save();
            u.ctx.setLineDash([]);
            u.ctx.fillStyle = css("--quiet");
            u.ctx.font = `${11 * devicePixelRatio}px system-ui`;
            u.ctx.textAlign = "right";
            u.ctx.strokeStyle = css("--paper");
            u.ctx.lineWidth = 4 * devicePixelRatio;
            for (const level of levels) {
              const place: [string, number, number] = [`${level.label} ${exact(level.value)}`, u.bbox.left + u.bbox.width - 8, u.valToPos(level.value, "y", true) - 4];
              u.ctx.strokeText(...place); // so that no curve crosses the words
              u.ctx.fillText(...place);
            }
            if (at.current === undefined) return u.ctx.restore();
            const x = u.valToPos(at.current, "x", true);
            u.ctx.strokeStyle = css("--accent");
            u.ctx.lineWidth = devicePixelRatio;
            u.ctx.beginPath();
            u.ctx.moveTo(x, u.bbox.top);
            u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
            u.ctx.stroke();
            u.ctx.restore();
          }],
        },
      },
      [rounds, ...curves.map((curve) => curve.values)] as uPlot.AlignedData,
      box.current,
    );
    drawn.over.addEventListener("click", () => drawn.cursor.idx != null && picked.current?.(drawn.cursor.idx));
    plot.current = drawn;
    return () => {
      plot.current = null;
      drawn.destroy();
    };
  }, [width, themed, content]);
  return (
    <div class="curves" data-last={rounds[rounds.length - 1]} style={{ minHeight: `${height[0]}px` }}>
      <div ref={box} role="img" aria-label={label} />
    </div>
  );
}

export function Key({ curves }: { curves: Curve[] }) {
  return (
    <>
      {curves.map((curve) => (
        <span class="key" key={curve.name}><i class={curve.dashed ? "dashed" : ""} style={{ color: `var(${curve.colour})` }} />{curve.name}</span>
      ))}
    </>
  );
}
