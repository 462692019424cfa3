(function () {
  "use strict";
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var drawn = [];

  function colorsOf(element) {
    var style = getComputedStyle(element);
    return function (name) { return style.getPropertyValue("--" + name).trim(); };
  }

  // Tooltips are built from text nodes: a name in the data can never become markup.
  function tooltip(head, rows) {
    var box = document.createElement("div");
    if (head) {
      var title = box.appendChild(document.createElement("div"));
      title.className = "tip-head";
      title.textContent = head;
    }
    rows.forEach(function (row) {
      var line = box.appendChild(document.createElement("div"));
      line.className = "tip-row";
      row.forEach(function (text) { line.appendChild(document.createElement("span")).textContent = text; });
    });
    return box;
  }

  var formatters = {
    "#points": function (found) {
      var rows = found.filter(function (each) { return each.data && each.data.text; });
      var head = rows.length ? rows[0].data.at || rows[0].name : "";
      return tooltip(head, rows.map(function (each) { return [each.seriesName, each.data.text]; }));
    },
    "#point": function (each) { return tooltip(each.data.at, [[each.seriesName, each.data.text]]); },
    "#at": function (each) { return each.data.at; }
  };

  function tickText(ticks) {
    return function (value) {
      var near = ticks.filter(function (tick) { return Math.abs(tick[0] - value) <= 1e-6 * Math.max(Math.abs(value), 1e-12); });
      return near.length ? near[0][1] : "";
    };
  }

  function resolved(node, color) {
    if (Array.isArray(node)) return node.map(function (each) { return resolved(each, color); });
    if (node === null || typeof node !== "object") {
      if (typeof node !== "string") return node;
      if (node[0] === "@") return color(node.slice(1));
      return node[0] === "#" && formatters[node] ? formatters[node] : node;
    }
    var copy = {};
    Object.keys(node).forEach(function (key) { copy[key] = resolved(node[key], color); });
    if (copy.formatter === "#ticks") copy.formatter = tickText(copy.ticks);
    return copy;
  }

  function draw(onPaper) {
    var color = colorsOf(onPaper ? document.querySelector(".paper") : document.documentElement);
    drawn.forEach(function (each) { each.chart.setOption(resolved(each.option, color), true); });
  }

  function fit() {
    drawn.forEach(function (each) { each.chart.resize(); });
  }

  // A4 less its margins; the style sheet gives charts the same height on paper.
  function fitPaper() {
    drawn.forEach(function (each) {
      each.chart.resize({ width: 660, height: Math.round(0.8 * each.chart.getDom().clientHeight) });
    });
  }

  document.querySelectorAll("[data-chart]").forEach(function (element) {
    var option = JSON.parse(document.getElementById(element.dataset.chart).textContent);
    drawn.push({ chart: echarts.init(element, null, { renderer: "svg" }), option: option });
  });
  draw(false);

  dark.addEventListener("change", function () { draw(false); });
  window.addEventListener("resize", fit);
  window.addEventListener("beforeprint", function () { fitPaper(); draw(true); });
  window.addEventListener("afterprint", function () { draw(false); fit(); });
})();
