import { render } from "preact";
import { App } from "./app.tsx";
import { watchPlaces, watchPresses } from "./arming.ts";
import { watchScrolling } from "./follow.ts";
import { connect } from "./picture.ts";
import { applyTheme } from "./theme.ts";
import "./style.css";

applyTheme();
watchPresses();
watchPlaces();
watchScrolling();
connect();
const place = document.getElementById("app");
if (place) render(<App />, place);
