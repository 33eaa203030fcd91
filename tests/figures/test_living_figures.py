"""What readers find when they move the living figures: each claim is reached by keyboard, and its numbers are the package's."""

import json
import math
import re
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from playwright.sync_api import Browser, Locator, Page
from torch import Tensor

from posenc_course.alibi import AlibiPositions
from posenc_course.attention import attention_weights
from posenc_course.contextual import ReflectedPositions
from posenc_course.experiment import changed, load_model
from posenc_course.experiment.corpus import DATA
from posenc_course.geometry import wavelengths
from posenc_course.naive import normalized
from posenc_course.relative import t5_buckets
from posenc_course.rope import RotaryPositions, apply_rope, rope_tables
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies, sinusoidal_table
from posenc_course.temperature import log_factor
from posenc_course.transformer import Decoder
from tests.figures.living import chosen, numbers, press, recorded, says, started
from tests.site.built import Site
from tools.sphinx import living_data


def sliders(tab: Page, plain: str) -> Locator:
    return tab.locator(f"#{plain} input[type=range]")


def test_order_changes_weights_through_each_door_but_a_mirror_none_through_the_third(browser: Browser, site: Site) -> None:
    given = {name: torch.from_numpy(numbers(rows)) for name, rows in recorded("fig-two-orders")["given"].items()}
    positions = torch.arange(6)

    def weights(scheme: PositionScheme, order: list[int]) -> torch.Tensor:
        x = scheme.embed(given["X"][None, order], positions)
        q, k = ((x @ given[name])[:, None].expand(-1, 8, -1, -1) for name in ("W_q", "W_k"))
        q, k = scheme.rotate(q, k, positions, positions)
        return attention_weights(q, k, bias=scheme.bias(q, positions, positions))[0, 0]  # of ALiBi's heads the steepest

    alibi = AlibiPositions(8)
    schemes = (PositionScheme(), SinusoidalPositions(4), RotaryPositions(frequencies(4)), alibi)
    with started(browser, site, "fig-two-orders") as tab:
        figure = tab.locator("#fig-two-orders living-figure")
        for order, button in (([1, 2, 3, 4, 5, 0], ""), ([5, 4, 3, 2, 1, 0], "Read backwards")):
            if button:
                figure.get_by_role("button", name=button).press("Enter")
            for scheme, door in zip(schemes, ("nowhere", "embedding", "query and key", "score"), strict=True):
                figure.get_by_role("radio", name=door, exact=True).press("Space")
                change = (weights(scheme, order) - weights(scheme, list(range(6)))[order][:, order]).abs().max()
                blind = scheme is schemes[0] or (bool(button) and scheme is alibi)
                assert (change < 1e-9) == blind
                says(tab, "fig-two-orders", "none has changed" if blind else f"largest change in a weight is {change:.3f}")
        figure.get_by_role("radio", name="nowhere", exact=True).press("Space")
        figure.get_by_label("Your own sentence").fill("the dog saw the <i>cat</i>")
        says(tab, "fig-two-orders", "“dog saw the <i>cat</i> the”: the weights have moved with their words")


def test_one_value_means_another_token_at_each_length(browser: Browser, site: Site) -> None:
    def bearers(value: float, *lengths: int) -> list[str]:
        tables = {length: normalized(range(length), length).tolist() for length in lengths}
        return [f"token {table.index(value) + 1} of {length}" for length, table in tables.items() if value in table]

    with started(browser, site, "fig-grids") as tab:
        figure = tab.locator("#fig-grids living-figure")
        first, last = (normalized([2], length)[0] for length in (4, 64))
        says = f"Token 3 has position {first:.3f} in a text of 4 tokens and position {last:.3f} in a text of 64."
        assert says in figure.locator(".finding").inner_text()
        chosen(figure, "Follow").press("ArrowDown")
        figure.get_by_role("slider", name="Tokens in your text").press("End")
        two = bearers(0.4, 4, 6, 81, 24, 64)
        assert len(two) == 2
        says = f"The value 0.40 is the position of {' and '.join(two)}, and no token has it"
        figure.locator(".finding", has_text=says).wait_for(timeout=3000)


def test_rightmost_columns_move_in_longer_tables(browser: Browser, site: Site) -> None:
    """Chapter 3: the rightmost pairs hardly move in 60 tokens; they are there for longer texts."""
    with started(browser, site, "fig-heatmap") as tab:
        figure = tab.locator("#fig-heatmap")
        turns = wavelengths(64)
        short = says(tab, "fig-heatmap", "within these 60 positions")
        press(tab, figure.get_by_label("Chosen column"), "End", 1)
        press(tab, figure.get_by_label("Positions", exact=False).first, "End", 1)
        figure.locator("input[max='47999']").wait_for()  # the slider reaches the other rows with the next frame
        press(tab, figure.get_by_label("Chosen position"), "End", 1)
        position, column, *_, value, repeats, pairs, full, length, slowest, _ = says(
            tab, "fig-heatmap", "At position 47,999, column 63"
        )
        middle = figure.evaluate("e => e.querySelector('living-figure').drawn.images[0][120]")
    assert short[-4:] == [len(turns), (turns <= 60).sum(), 60, round(turns[-1].item())]
    assert (position, column, length) == (length - 1, 63, 48000)
    assert value == round(sinusoidal_table([position], 64)[0, 63].item(), 2)
    assert repeats == slowest == round(turns[-1].item()) <= length
    assert pairs == full == (turns <= length).sum() == 32
    mean = sinusoidal_table(range(120 * 200, 121 * 200), 64).mean(dim=0)
    assert abs(mean.numpy() - middle).max() < 1e-9, "each line of the picture is the mean of its positions"


def test_only_the_slowest_hand_tells_far_positions_apart(browser: Browser, site: Site) -> None:
    """Chapter 4: slow hands show roughly where, fast ones exactly; without the slowest, positions are whole rotations off."""
    with started(browser, site, "fig-clocks") as tab:
        figure = tab.locator("#fig-clocks")
        _, above, below, *turns = says(tab, "fig-clocks", "only the fourth can tell")
        figure.get_by_role("button", name="Read a hidden row").press("Enter")
        press(tab, figure.get_by_label("hundreds"), "Home", 1)
        (off,) = says(tab, "fig-clocks", "the slowest, is")
        figure.get_by_role("button", name="Show its position").press("Enter")
        (hidden,) = says(tab, "fig-clocks", "All four hands agree")
    omega = frequencies(8).numpy()
    assert (above, below, hidden) == (37, 1922, 2024)
    assert turns == [round(turn, 1) for turn in omega * (below - above) / (2 * np.pi)]
    rotated = sinusoidal_table([above, below], 8).view(2, 4, 2)
    assert [bool(near) for near in (rotated[0] * rotated[1]).sum(dim=-1) > np.cos(np.radians(10))] == [True, True, True, False]
    assert off == round(np.degrees(omega[-1] * hidden))


def test_photograph_does_not_tell_seconds_10_and_12_apart(browser: Browser, site: Site) -> None:
    """Chapter 4: the first pendulum hangs at the same position at both moments, and moves in opposite directions."""
    with started(browser, site, "fig-pendulums") as tab:
        figure = tab.locator("#fig-pendulums")
        photograph, seconds = figure.get_by_label("Photograph"), figure.get_by_label("Seconds")
        says(tab, "fig-pendulums", "The second pendulum is now doing what the first one did after 1 second.")
        press(tab, photograph, "Space", 1)
        first = says(tab, "fig-pendulums", "10 seconds after the push, the first pendulum hangs to the left (")
        press(tab, seconds, "ArrowRight", 2)
        second = says(tab, "fig-pendulums", "12 seconds after the push, the first pendulum hangs to the left (")
    rows = sinusoidal_table([10, 12], 8)[:, :2].numpy().round(2)
    assert first[1] == second[1] == rows[0, 0] == rows[1, 0]


def test_random_projections_make_the_score_depend_on_the_position(browser: Browser, site: Site) -> None:
    """Chapter 6: at one offset the angles are the same everywhere, and so is the score, but not with random projections."""
    plain = "fig-spread"
    table = sinusoidal_table(range(512), 16).numpy()

    def scores(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        everything = table @ matrix @ table.T
        return (everything.diagonal(-4) - everything.mean()) / everything.std(ddof=1)

    with started(browser, site, plain) as tab:
        angles = tab.locator(f"#{plain} svg text", has_text="pair 0")
        both, ahead = (tab.locator(f"#{plain}").get_by_label(label) for label in ("Move both", "Query ahead"))
        press(tab, ahead, "ArrowRight", 1)
        plain_score = f"{scores(np.eye(16))[100]:.2f}"
        first = says(tab, plain, f"The score is the same, too: {plain_score} ")
        angle = angles.text_content()
        press(tab, both, "ArrowRight", 10)
        assert says(tab, plain, "At positions 114 and 110")[2:] == first[2:]
        chosen(tab.locator(f"#{plain}"), "Projections").press("ArrowDown")
        random = scores(numbers(recorded(plain)["given"]["first"]))
        *_, here, low, high, ratio = says(tab, plain, "The score is not")
        assert [here, low, high, ratio] == np.round(
            [abs(random[110]), random.min(), random.max(), random.std(ddof=1)], 2
        ).tolist()
        assert angles.text_content() == angle == f"pair 0: {360 - math.degrees(4):.0f}°"


def test_one_matrix_rotates_every_hand_wherever_it_starts(browser: Browser, site: Site) -> None:
    """Chapter 6: the matrix under a clock changes with the shift only, and takes each start to its end."""
    plain, omega = "fig-one-turn", frequencies(8).numpy()
    with started(browser, site, plain) as tab:
        figure = tab.locator(f"#{plain} living-figure")
        for m, delta, moved in ((13, 3, ""), (43, 3, "Move both to"), (43, 5, "Tokens apart")):
            if moved:
                press(tab, figure.get_by_label(moved), "ArrowRight", 30 if delta == 3 else delta - 3)
            words = f"From position {m} to position {m + delta}, the four hands"
            assert says(tab, plain, words) == [m, m + delta, *np.degrees(omega * delta).round(1), 1, 1 + delta]
            cos, sin = np.cos(omega * delta), np.sin(omega * delta)
            blocks = np.array([[cos, sin], [-sin, cos]]).transpose(2, 0, 1)
            texts = figure.locator("svg text.number", has_text=re.compile(r"^\W?\d\.\d\d$")).all_text_contents()
            assert [float(text.replace("−", "-")) for text in texts] == [*blocks.round(2).ravel()]


def test_causal_mask_leaks_the_order_layer_by_layer(browser: Browser, site: Site) -> None:
    """Chapter 1: *likes* differs after one layer, the full stop after two; without the mask, no vector differs."""
    plain = "fig-leak"
    names = sorted("Ada Ben Cleo Dan Eve Finn Gus Hanna Ida Jane John Kim".split())
    words = [names.index("John"), len(names), names.index("Jane"), len(names) + 1]
    torch.manual_seed(0)
    decoder = Decoder(len(names) + 2, 32, 4, num_layers=2).double()
    vectors = decoder.embedding(torch.tensor([words, [words[2], words[1], words[0], words[3]]]))
    differs = []
    with torch.no_grad():
        for block in decoder.blocks:
            vectors = block(vectors, torch.arange(4))
            differs += (vectors[0] - vectors[1][[2, 1, 0, 3]]).abs().amax(dim=-1).tolist()
    with started(browser, site, plain) as tab:
        figure = tab.locator(f"#{plain} living-figure")
        says(tab, plain, f"the full stop differs by up to {differs[7]:.2f}. In layer 2, position 3 looks at")
        computed = figure.get_by_label("Computed so far")
        press(tab, computed, "ArrowLeft", 4)
        says(tab, plain, "the vector of the full stop is the same")
        assert differs[3] < 1e-9
        press(tab, computed, "ArrowLeft", 2)
        found = says(tab, plain, "looks at “John” and “likes” in the first sentence, and at “Jane” and “likes” in the second")
        assert found == [round(differs[1], 2), 1, 1]
        press(tab, computed, "End", 1)
        chosen(figure, "Mask").press("ArrowDown")
        says(tab, plain, "the vector of the full stop is the same")
        assert not figure.locator("svg .dot.vermillion").count()


def test_arrows_keep_their_angle_when_both_tokens_move(browser: Browser, site: Site) -> None:
    """Chapter 10: the angle, and so the score, stays when both move, and changes with their distance or order."""

    def found(m: int, n: int) -> list[float]:
        ahead = math.radians(25)
        pair = torch.tensor([[2.0, 0], [1.25 * math.cos(ahead), 1.25 * math.sin(ahead)]], dtype=torch.float64)
        cos, sin = rope_tables([m, n], torch.tensor([math.pi / 9], dtype=torch.float64), dtype=torch.float64)
        query, key = apply_rope(pair[None, None], cos, sin, interleaved=True)[0, 0]
        score = (query @ key).item()
        return [round(math.degrees(math.acos(score / 2.5))), round(score, 2)]

    with started(browser, site, "fig-two-turned") as tab:
        assert says(tab, "fig-two-turned", "at position 5")[:2] == found(5, 2) == [35, 2.05]
        press(tab, sliders(tab, "fig-two-turned").nth(0), "ArrowRight", 4)
        assert says(tab, "fig-two-turned", "moved")[:2] == found(9, 6) == [35, 2.05]
        press(tab, sliders(tab, "fig-two-turned").nth(1), "ArrowRight", 3)
        assert says(tab, "fig-two-turned", "95°")[:2] == found(12, 6) == [95, -0.22]


def test_fast_pairs_alone_put_the_peak_elsewhere_too(browser: Browser, site: Site) -> None:
    """Chapter 10: all pairs together have one peak, where the key was made for; four fast ones have another far away."""
    query = torch.randn(64, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    omega = frequencies(64)

    def found(*pairs: int) -> list[float]:
        """What the figure says of these pairs: how many offsets come near the best, how far away, and the pairs' weights."""
        part = query.unflatten(0, (32, 2))[list(pairs)]
        rotated = apply_rope(
            part.flatten().expand(1, 1, 401, -1),
            *rope_tables(range(401), omega[list(pairs)], dtype=query.dtype),
            interleaved=True,
        )[0, 0]
        score = rotated @ rotated[300] / (rotated[300] @ rotated[300])
        assert score.argmax() == 300
        high = (score >= 0.9).nonzero().flatten() - 300
        shares = part.square().sum(dim=1) / part.square().sum()
        percent = [float(f"{100 * share:.2g}") for share in (shares.min(), shares.max())]
        return [len(pairs), 300, len(high) - 1, 0.9, int(high.abs().max()), *percent]

    with started(browser, site, "fig-made-for") as tab:
        assert says(tab, "fig-made-for", "All 32 waves") == found(*range(32))
        press(tab, sliders(tab, "fig-made-for").nth(1), "ArrowLeft", 28)
        assert says(tab, "fig-made-for", "All 4 waves") == found(0, 1, 2, 3)
        assert found(0, 1, 2, 3)[4] > 100 > found(*range(32))[4]
        chosen(tab.locator("#fig-made-for"), "Starting with").press("ArrowDown")
        assert says(tab, "fig-made-for", "At 400 other offsets") == found(28, 29, 30, 31)


def test_a_lead_is_diluted_and_a_factor_of_ln_n_holds_it(browser: Browser, site: Site) -> None:
    """Chapter 16: four more points of lead count for 55 times as many keys; scores times ln n keep what they have at first."""

    def share(lead: float, keys: int, times: Tensor | None = None) -> float:
        scores = torch.zeros(keys, 1, dtype=torch.float64)
        scores[0] = lead
        query = torch.ones(1, 1, dtype=torch.float64) if times is None else times[:, None]
        return round(100 * attention_weights(query, scores)[0, 0].item(), 1)

    with started(browser, site, "fig-dilution") as tab:
        figure = tab.locator("#fig-dilution")
        times = log_factor([16383], 64)
        said = says(tab, "fig-dilution", "One of 16,384 keys")
        assert said[:8] == [16384, 8, share(8, 16384), 16383, 100 - said[2], round(times.item(), 2), 16384, 64]
        assert round(said[8]) == round(share(8, 16384, times)) == 100
        press(tab, figure.get_by_label("Lead of the best key"), "ArrowRight", 4)
        press(tab, figure.get_by_label("Keys in the text"), "ArrowRight", 6)
        diluted = says(tab, "fig-dilution", "One of 1,048,576 keys leads by 12")
        assert diluted[2] == share(12, 2**20) < said[2] < 1.2 * diluted[2], "64 times as many keys, and a lead worth 55"


def test_wide_buckets_are_shared(browser: Browser, site: Site) -> None:
    """Chapter 9: near offsets have a bucket each, far ones share it, and an encoder has half as many for the past."""

    def shared(causal: bool) -> list[int]:
        buckets = t5_buckets(range(301), causal=causal)
        alike = (buckets == buckets[100]).nonzero().flatten()
        return [int(buckets[100]), len(alike) - 1, int(alike.min()), int(alike.max())]

    with started(browser, site, "fig-buckets") as tab:
        press(tab, sliders(tab, "fig-buckets").first, "PageUp", 3)  # a tenth of 300 each
        assert says(tab, "fig-buckets", "Offset 100") == [100, *shared(True), 15]
        chosen(tab.locator("#fig-buckets"), "The key is in the").press("ArrowDown")
        bucket, _, first, last = shared(False)
        assert says(tab, "fig-buckets", f"every offset from {first} on") == [100, bucket, first, 7]
        assert last == 300  # all farther offsets
        chosen(tab.locator("#fig-buckets"), "The key is in the").press("ArrowDown")
        ahead = t5_buckets(range(-300, 0), causal=False)
        bound = int((ahead == ahead[200]).nonzero().max()) - 300
        assert says(tab, "fig-buckets", "Offset −100") == [-100, int(ahead[200]), bound, 7]


def known_words(model: Decoder, prompt: str) -> str:
    """Of the words that the model writes from byte 112 on, taking the likeliest byte each time, how many are frequent ones."""
    tokens, caches = list(prompt.encode()), model.new_caches()
    with torch.inference_mode():
        scores = model(torch.tensor([tokens]), caches=caches)
        while len(tokens) < 256:
            tokens.append(int(scores[0, -1].argmax()))
            scores = model(torch.tensor([tokens[-1:]]), caches=caches)
    words = list(re.finditer("[A-Za-z]{3,}(?=[^A-Za-z])", bytes(tokens).decode()))
    known, frequent = [word[0].lower() for word in words if word.start() >= 112], set(living_data.words())
    return f"{sum(word in frequent for word in known)} of {len(known)}"


def test_rope_s_writing_falls_apart_and_a_window_holds_it(browser: Browser, site: Site) -> None:
    prompt, rope = living_data.windows()[0][:32], load_model("rope")
    expected = [known_words(model, prompt) for model in (rope, changed(rope, "window", 64, 64), load_model("alibi"))]
    with started(browser, site, "fig-written") as tab:
        figure = tab.locator("#fig-written living-figure")
        finding, asks = figure.locator(".finding"), figure.get_by_role("button", name="Let the models write")
        asks.press("Enter")
        finding.get_by_text("from byte 112 on after prompt 1").wait_for()
        shares = [int(a) / int(b) for a, b in re.findall(r"(\d+) of (\d+)", finding.inner_text())]
        assert shares[0] < 0.1 < 0.25 < min(shares[1:])
        figure.get_by_label("Temperature").press("Home")
        said = "{} words are known with RoPE, {} with RoPE and the window, and {} with ALiBi.".format(*expected)
        finding.get_by_text(f"from byte 112 on after prompt 1, {said}").wait_for()


def test_averages_over_windows_tell_the_distance_and_averages_over_everything_do_not(browser: Browser, site: Site) -> None:
    """Chapter 14: with windows, the cosine is the same at any position; if tokens average everything so far, it changes."""
    plain = "fig-overlap"
    later = (63, 255, 1023)

    def cosine(m: int, distance: int, width: int) -> float:
        """For tokens that are columns of the identity matrix, which are independent of each other."""
        one, other = (np.eye(1024)[max(at - width + 1, 0) : at + 1].mean(axis=0) for at in (m, m - distance))
        return round(float(one @ other / np.sqrt((one @ one) * (other @ other))), 2)

    with started(browser, site, plain) as tab:
        figure = tab.locator(f"#{plain} living-figure")
        position, distance = (figure.get_by_label(label) for label in ("Later token", "Distance"))
        press(tab, distance, "ArrowRight", 8)
        for m in later:
            assert says(tab, plain, f"and {m:,} are 12 tokens apart") == [m - 12, m, 12, 4, 16, cosine(m, 12, 16)]
            press(tab, position, "ArrowRight", 1)
        assert len({cosine(m, 12, 16) for m in later}) == 1
        chosen(figure, "Each token averages").press("ArrowDown")
        whole = [cosine(m, 12, 1024) for m in later]
        said = says(tab, plain, "Token 1,023 averages 1,024 tokens")
        assert said == [1023, 1024, 1011, 1012, whole[-1], whole[0], 63, whole[-1], 1023]
        assert whole == sorted({*whole}), "they differ, and late in the text, tokens are more alike"


def test_order_of_mirrors_matters_and_that_of_rotations_does_not(browser: Browser, site: Site) -> None:
    """Chapter 15: mirrors play the shell game, in which the order of the swaps counts; rotations lose it."""
    plain = "fig-cups"
    swaps = {"A": (0, 1), "B": (1, 2), "C": (0, 2)}

    def real(game: str) -> int:
        cup = 0
        for a, b in (swaps[name] for name in game):
            cup = b if cup == a else a if cup == b else cup
        return cup

    def reflected(game: str) -> int:
        """The cup to which the package's mirrors take a ball that begins under cup 0."""
        scheme = ReflectedPositions(3, 1).double()
        scheme.mirror.weight.data = torch.eye(3, dtype=torch.float64)
        cups = torch.eye(3, dtype=torch.float64)
        tokens = torch.stack([cups[a] - cups[b] for a, b in (swaps[name] for name in game)])
        product = scheme.locate(tokens[None], torch.arange(len(game)), None)[0, 0, -1]
        return int((product @ cups[0]).argmax())

    with started(browser, site, plain) as tab:
        figure = tab.locator(f"#{plain}")
        game = "AB"
        found = says(tab, plain, "After A and B, the reflected arrow")
        assert found == [reflected(game), real(game), reflected(game[::-1])] == [2, 2, 1]
        assert real(game[::-1]) == 1
        for name in "CAB":
            figure.get_by_role("button", name=f"{name}: swap").press("Enter")
            game += name
            found = says(tab, plain, f"{game[-2]} and {game[-1]}, the reflected arrow")
            assert found == [reflected(game), real(game), reflected(game[::-1])]
        chosen(figure, "Each swap is a").press("ArrowDown")
        turned = sum(swaps[name][1] - swaps[name][0] for name in game) % 3
        assert says(tab, plain, "the rotated arrow")[:2] == [turned, real(game)]


def runs_of(group: str) -> list[dict[str, Any]]:
    """What was measured of the released model."""
    runs = json.loads((DATA / "released/measured.json").read_text("utf-8"))["runs"]
    return [run for run in runs if run["group"] == group]


def test_a_head_that_looks_back_is_found_on_the_map(browser: Browser, site: Site) -> None:
    """Chapter 19: by keyboard and by a click, what the record says of a head."""
    stored = runs_of("heads")

    def expected(layer: int, head: int) -> list[float]:
        one = stored[layer]["heads"][head]
        looks = one["first"], one["distances"][1], one["distances"][0], one["equal"], one["after equal"], sum(one["share"][:16])
        return [share / 10 for share in looks]

    with started(browser, site, "fig-head-map") as tab:
        figure = tab.locator("#fig-head-map living-figure")

        def agrees(layer: int, head: int) -> None:
            found = says(tab, "fig-head-map", f"Head {head} of layer {layer} has")
            assert all(abs(a - b) <= 0.8 for a, b in zip(found[2:], expected(layer, head), strict=True)), found

        agrees(16, 0)
        layer, head = (figure.get_by_role("slider", name=name) for name in ("Layer", "Head"))
        press(tab, layer, "ArrowRight", 1)
        press(tab, head, "ArrowRight", 3)
        agrees(17, 3)


def test_two_pairs_of_a_released_model_make_its_cliff(browser: Browser, site: Site) -> None:
    """Chapter 18: what the record says of them, alone and together."""
    stored = {name: runs_of(name) for name in ("cliff", "scan")}

    def mean(run: dict[str, Any], first: int, last: int, start: int = 0) -> float:
        """The mean loss of these tokens, in nats, if the texts begin at token `start`."""
        part = slice((first - start) // run["width"], (last + 1 - start) // run["width"])
        return float(np.mean([losses[part] for losses in run["losses"].values()])) / 1000

    whole, shorter = stored["cliff"]

    def expected(*pairs: int) -> list[float]:
        (run,) = (r for r in stored["scan"] if r["setting"] == {"pairs": [*pairs], "speed": 0.5})
        left = mean(run, 11_264, 12_287) - mean(shorter, 11_264, 12_287, 6144)
        return [round(left, 2), round(mean(run, 0, 2047) - mean(whole, 0, 2047), 3)]

    with started(browser, site, "fig-real") as tab:
        figure = tab.locator("#fig-real living-figure")
        released = says(tab, "fig-real", "As released, the cliff is at about token 10,800")
        assert released[-1] == round(mean(whole, 11_264, 12_287) - mean(shorter, 11_264, 12_287, 6144), 2)
        figure.get_by_label("Pair at half its speed").first.fill("23")
        found = says(tab, "fig-real", "Pair 23 at half its speed:")
        for number in expected(23):
            assert any(abs(number - one) < 0.002 for one in found)
        figure.get_by_label("Setting").select_option("Pairs 22 and 23 at half their speed")
        found = says(tab, "fig-real", "Pairs 22 and 23 at half their speed: there is no cliff up to token 12,288")
        for number in expected(22, 23):
            assert any(abs(number - one) < 0.002 for one in found)
        assert figure.get_by_label("Read up to token").input_value() == "12288", "it says where the curve ends"
        figure.get_by_label("Setting").select_option("NTK-aware scaling, factor 2")
        says(tab, "fig-real", "NTK-aware scaling, factor 2: there is no cliff up to token 14,336")
