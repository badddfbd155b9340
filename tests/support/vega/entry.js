import embed from "vega-embed"; window.vegaEmbed = embed;
