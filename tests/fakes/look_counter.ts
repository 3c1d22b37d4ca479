/** Counts how often anything is read of objects: what a judgement of thousands of them costs. */
export class LookCounter {
  looks = 0;

  /** The object, each look at which is counted. */
  readonly counted = <Item extends object>(item: Item): Item =>
    new Proxy(item, {
      get: (target, key) => {
        this.looks++;
        return Reflect.get(target, key);
      },
    });
}
